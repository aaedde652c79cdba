"""`leakscope attach`: a program that already runs is seen from outside, and left alone."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from leakscope.analysis import analyse
from leakscope.cli import main
from leakscope.record.reader import load
from running import LEAKSCOPE, PROGRAMS, PYTHON, environment


@pytest.fixture
def program(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [PYTHON, str(PROGRAMS / "grows_by_the_clock.py"), str(tmp_path / "stop")]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def _attach(program: subprocess.Popen[bytes], cwd: Path, *words: str) -> subprocess.Popen[bytes]:
    command = [*LEAKSCOPE, "attach", str(program.pid), "--out", str(cwd / "rec"), *words]
    return subprocess.Popen(command, cwd=cwd, env=environment(), stderr=subprocess.PIPE)


def test_growth_is_seen_from_outside_and_what_is_not_is_said(
    program: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    onlooker = _attach(program, tmp_path, "--seconds", "4", "--quiet")
    said = onlooker.communicate(timeout=60)[1].decode()
    assert onlooker.returncode == 0, said
    report = analyse(load(str(tmp_path / "rec")))
    (main_process,) = report.processes
    assert main_process.pid == program.pid
    assert not main_process.is_followed
    assert main_process.last_rss_bytes is not None
    assert main_process.first_rss_bytes is not None
    assert main_process.last_rss_bytes > main_process.first_rss_bytes
    assert report.verdict.value in {"growing", "unknown"}  # never LEAK: no holder can be seen
    assert any("(attached)" in gap.what for gap in report.blind_spots)
    assert "its end" in report.ending.says or "before the program's end" in report.ending.says
    (tmp_path / "stop").touch()
    out, _ = program.communicate(timeout=60)
    assert (program.returncode, out) == (7, b"finished\n")


def test_ctrl_c_ends_the_onlooker_with_a_report(
    program: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    onlooker = _attach(program, tmp_path)
    assert onlooker.stderr is not None
    assert b"watching process" in onlooker.stderr.readline()
    while not (tmp_path / "rec" / "supervisor.jsonl").exists():
        assert onlooker.poll() is None
    os.kill(onlooker.pid, signal.SIGINT)
    said = onlooker.communicate(timeout=60)[1].decode()
    assert onlooker.returncode == 0, said
    assert "Traceback" not in said
    assert program.poll() is None


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (["999999999"], "no-such-process"),
        (["train"], "no-such-process"),
        (["1", "--seconds", "soon"], "bad-option"),
        (["1", "--seconds", "nan"], "bad-option"),
    ],
)
def test_mistakes_are_told(words: list[str], slug: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attach", *words]) == 2
    assert f"docs/messages.md#{slug}" in capsys.readouterr().err
