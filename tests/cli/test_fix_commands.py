"""`leakscope fix` and `leakscope verify`: what they show, what they refuse, what they write."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from leakscope.cli import main
from running import run_watched

_LEAKS = """\
import time
import numpy as np
frames = []
for number in range(700):
    frames.append(np.full(4000, number, dtype=np.float64))
    time.sleep(0.002)
    if number % 100 == 0:
        print(number, frames[-1].sum())
"""
_STEADY = _LEAKS.replace("frames.append(", "frames = [1, (").replace("64))", "64))][1:]")


@pytest.fixture(scope="module")
def leaked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a script and, beside it, the recording of its run."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "collect.py").write_text(_LEAKS)
    watched = run_watched(["collect.py"], folder)
    assert watched.report["verdict"] in ("leak", "growing"), watched.said
    shutil.copytree(watched.directory, folder / ".leakscope" / "collect-1")
    return folder


@pytest.fixture
def project(leaked: Path) -> Path:
    """The same for one test; its script is put back afterwards."""
    (leaked / "collect.py").write_text(_LEAKS)
    return leaked


def test_fix_shows_the_diff_and_writes_when_told(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when showing a change makes it, or making it does something else."""
    monkeypatch.chdir(project)
    script = project / "collect.py"
    assert main(["fix", ".leakscope/collect-1"]) == 0
    shown = capsys.readouterr().out
    assert "+    del frames[:-1]\n" in shown
    assert "--- a/collect.py" in shown
    assert script.read_text() == _LEAKS
    assert main(["fix", "collect.py", "--write"]) == 0
    said = capsys.readouterr()
    assert said.out == shown
    assert said.err == f"leakscope: changed {script}\n"
    line = "    frames.append(np.full(4000, number, dtype=np.float64))\n"
    assert script.read_text() == _LEAKS.replace(line, f"{line}    del frames[:-1]\n")
    assert main(["fix", "collect.py", "--write"]) == 2
    assert capsys.readouterr().err.rstrip().endswith("#source-changed")


def test_verify_refuses_what_it_cannot_prove(
    project: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Breaks when a run that did not grow, a wrong file or a changed source is a traceback."""
    monkeypatch.chdir(project)
    run = ".leakscope/collect-1"
    for words, slug in (
        (["verify", "--before", str(tmp_path)], "not-a-recording"),
        (["verify", "--before", run, "--report", "x.txt"], "unknown-format"),
        (["fix", str(tmp_path)], "not-a-recording"),
        (["fix", "nowhere.py"], "not-a-recording"),
    ):
        assert main(words) == 2, words
        assert capsys.readouterr().err.rstrip().endswith(f"#{slug}"), words
    (project / "collect.py").write_text(_STEADY)
    assert main(["verify", "--before", run, "--apply-fix", "--out", str(tmp_path / "a")]) == 2
    assert capsys.readouterr().err.rstrip().endswith("#source-changed")


def test_verify_runs_the_program_as_it_is_now(
    project: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Breaks when the same leak is called gone, or the command of the run is not taken."""
    monkeypatch.chdir(tmp_path)
    run = str(project / ".leakscope" / "collect-1")
    assert main(["verify", "--before", run, "--out", str(tmp_path / "after")]) == 1
    said = capfd.readouterr()
    assert said.out.startswith("0 0.0\n100 400000.0\n")
    assert said.err.split()[0] in ("UNCHANGED", "SMALLER", "LARGER")
    assert "recording   " in said.err
