"""Killed at any moment, the program leaves a readable recording and a report that says so."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import leakscope.observe.processes.tree
from leakscope.analysis import analyse
from leakscope.api import write_header
from leakscope.inject import environment_for
from leakscope.record.reader import load
from leakscope.supervise import Exited, Supervisor
from running import LEAKSCOPE, PROGRAMS, PYTHON, environment, run_watched

_KILL = "(sleep {seconds}; kill -9 $$) & exec {command}"


def _killed_after(seconds: float, words: str, directory: Path) -> int:
    """Run, kill, report; the last step that was recorded."""
    directory.mkdir()
    shell = _KILL.format(seconds=seconds, command=f"{PYTHON} {PROGRAMS / 'steps_only.py'} {words}")
    command = ("sh", "-c", shell)
    write_header(str(directory), command, {})
    inside = environment_for(str(directory), base=environment())
    assert Supervisor(str(directory), command, inside).run() == Exited(None, signal.SIGKILL)
    recording = load(str(directory))
    # One write per record: a kill can tear the last line of the one file being written.
    assert recording.torn_lines <= 1
    assert recording.unknown_records == 0
    report = analyse(recording)
    assert report.ending.signal == signal.SIGKILL
    assert report.ending.says.startswith("killed by signal 9 (SIGKILL)"), report.ending
    return report.steps if report.steps_from != "time" else 0


@pytest.mark.parametrize("seed", range(5))
def test_kill_at_random_moments(seed: int, tmp_path: Path) -> None:
    """Breaks when a SIGKILL during start-up, a write or a flush leaves what cannot be read."""
    dice = random.Random(seed)
    for number in range(10):
        _killed_after(dice.choice((0.02, 0.1, 0.6)) * dice.random(), "", tmp_path / str(number))


def test_kill_loses_no_more_than_the_last_block(tmp_path: Path) -> None:
    """Breaks when rows wait in memory for an end that a killed program does not have."""
    assert _killed_after(1.2, "", tmp_path / "x") > 100


@pytest.mark.torch
def test_kill_a_training_run_at_random_moments(tmp_path: Path) -> None:
    """Breaks when the same goes wrong while torch is imported or hooked."""
    dice = random.Random(99)
    for number in range(5):
        _killed_after(0.3 + 2.0 * dice.random(), "torch", tmp_path / str(number))


@pytest.fixture
def memory_cgroup() -> Iterator[Path]:
    """A cgroup of 300 MB, version 1 or 2, where this test may make one."""
    for root, name in (("memory", "memory.limit_in_bytes"), ("", "memory.max")):
        group = Path("/sys/fs/cgroup") / root / f"leakscope-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / name).write_text(str(300 << 20))
        except OSError:
            group.rmdir()
            continue
        yield group
        for _ in range(50):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.1)
        return
    pytest.skip("no memory cgroup can be made here (needs root and a writable /sys/fs/cgroup)")


def test_oom_kill_is_told_with_step_and_share(memory_cgroup: Path, tmp_path: Path) -> None:
    """Breaks when the kernel's OOM killer takes the report along, or goes unsaid in it."""
    out, report = tmp_path / "rec", tmp_path / "report.md"
    leakscope = " ".join([*LEAKSCOPE, "run", "--out", str(out), "--report", str(report)])
    shell = f"echo $$ > {memory_cgroup}/cgroup.procs && exec {leakscope} {PROGRAMS}/until_oom.py"
    done = subprocess.run(
        ["sh", "-c", shell], cwd=tmp_path, env=environment(), capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    ending = analyse(load(str(out))).ending
    before, _, after = ending.says.partition("; ")
    assert before.startswith("killed by signal 9 (SIGKILL) at step ")
    # 4 MiB a step; the supervisor and the interpreter take their part of the 300.
    assert 30 <= int(before.rpartition(" ")[2]) <= 75, ending
    assert after.startswith("the kernel's OOM killer did it; memory was at "), ending
    assert "% of the cgroup v" in after
    assert "OOM killer" in report.read_text()
    assert "OOM killer" in done.stderr.decode()


def test_program_outlives_a_killed_supervisor(tmp_path: Path) -> None:
    """Breaks when losing leakscope itself takes the program down or leaves no recording."""
    script = tmp_path / "go_on.py"
    script.write_text(
        "import leakscope, os, sys, time\nprint(os.getpid(), flush=True)\n"
        "while not os.path.exists('go'):\n    leakscope.step(); time.sleep(0.001)\n"
        "open('finished', 'w').close()\n"
    )
    process = subprocess.Popen(
        [*LEAKSCOPE, "run", "--out", "rec", str(script)],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    int(process.stdout.readline())
    time.sleep(0.7)  # until the supervisor has written once
    process.kill()
    process.wait()
    recording = load(str(tmp_path / "rec"))
    assert recording.torn_lines == 0
    (tmp_path / "go").touch()
    with process.stdout:
        process.stdout.read()  # ends when the program has ended
    assert (tmp_path / "finished").exists()
    report = analyse(load(str(tmp_path / "rec")))
    assert report.steps > 10
    assert report.ending.says == "the recording stops before the program's end"


def test_steps_end_where_the_program_ended(tmp_path: Path) -> None:
    """Breaks when the number of steps in the report is that of the last row, not of the program."""
    script = tmp_path / "quick.py"
    script.write_text("import leakscope\nfor _ in range(777): leakscope.step()\n")
    ran = run_watched([script], tmp_path)
    assert (ran.report["steps"], ran.report["steps_from"]) == (777, "api")


def test_supervisor_that_stumbles_stays_with_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when a surprise in /proc ends the supervisor and leaves the program an orphan."""

    def surprise(pid: int, zombies: list[int]) -> list[object]:
        raise ValueError("a line nobody has seen before")

    monkeypatch.setattr(leakscope.observe.processes.tree, "find_tree", surprise)
    command = (PYTHON, "-c", "import time; time.sleep(0.3); raise SystemExit(8)")
    write_header(str(tmp_path), command, {})
    assert Supervisor(str(tmp_path), command, environment()).run() == Exited(8, None)
    recording = load(str(tmp_path))
    whys = [gap.why for gap in recording.gaps]
    assert whys.count("ValueError: a line nobody has seen before") == 1
    assert analyse(recording).ending.exit_code == 8
