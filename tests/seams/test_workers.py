"""Workers of data loaders and ranks of torchrun: each has a file, a name and its own steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from running import PROGRAMS, PYTHON, counted, pids_told, run_watched, steps_of

pytestmark = pytest.mark.torch


def _process(starts: dict[int, str], stdout: bytes, word: str) -> str:
    (pid,) = pids_told(stdout, word)
    return starts[pid]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_each_worker_has_its_own_rows(method: str, tmp_path: Path) -> None:
    """Breaks when a worker is not followed, not named, or counts what it did not fetch."""
    ran = run_watched([PROGRAMS / "loaders.py", method], tmp_path)
    assert (ran.status, ran.stderr) == (0, b""), ran.seen
    workers = 2 if method == "fork" else 1
    assert f"batches {12 * workers}\n".encode() in ran.stdout
    recording = ran.recording()
    by_pid = {start.pid: process for process, start in recording.starts.items()}
    for number in range(workers):
        process = _process(by_pid, ran.stdout, f"{method}-{number}")
        start = recording.starts[process]
        assert (start.kind, start.name) == ("worker", f"worker {number}")
        assert process in recording.followed
        steps = steps_of(recording, process, "fetch")
        assert steps[0] == 1
        assert 2 <= steps[-1] <= 12
        assert steps == sorted(set(steps))
        assert set(recording.sources(process)) == {"time", "fetch"}
    main = _process(by_pid, ran.stdout, "main")
    assert recording.starts[main].kind == "main"
    assert counted(recording, main) == 12 * workers
    names = {one["name"] for one in ran.report["processes"]}
    assert {f"worker {number}" for number in range(workers)} | {"main"} <= names


def test_torchrun_ranks_count_their_own_steps(tmp_path: Path) -> None:
    """Breaks when ranks are not followed through torchrun, are unnamed, or share a count."""
    torchrun = Path(PYTHON).parent / "torchrun"
    if not torchrun.exists():
        pytest.skip("no torchrun beside this Python")
    words = ["--standalone", "--nproc-per-node", "2", str(PROGRAMS / "ranks.py")]
    ran = run_watched([torchrun, *words], tmp_path)
    assert ran.status == 0, ran.seen
    recording = ran.recording()
    by_pid = {start.pid: process for process, start in recording.starts.items()}
    for rank in (0, 1):
        process = _process(by_pid, ran.stdout, f"rank-{rank}")
        assert recording.starts[process].environment["RANK"] == str(rank)
        assert counted(recording, process) == 30
        assert steps_of(recording, process, "optimizer")[:2] == [0, 1]
        assert ran.process(f"rank {rank}")["steps"] == 30
        assert ran.process(f"rank {rank} worker 0")["kind"] == "worker"
    assert ran.process("main")["command"].count("torchrun") >= 1
    assert (ran.report["steps"], ran.report["steps_from"]) == (30, "optimizer")


def test_an_actor_beside_the_training_is_watched_by_the_clock(tmp_path: Path) -> None:
    """Breaks when a process without steps in a program with torch is seen from outside only, or
    what it keeps is told per tick beside a rate per step."""
    ran = run_watched([PROGRAMS / "actor_beside.py"], tmp_path)
    assert ran.status == 0, ran.seen
    recording = ran.recording()
    (actor,) = (process for process, one in recording.starts.items() if one.name == "process actor")
    assert any(value for value in recording.columns(actor, "tick")["in_use_bytes"])
    assert ran.report["verdict"] in ("growing", "leak")
    for finding in ran.report["findings"]:
        assert finding["processes"] == ["process actor"]
        assert finding["count_per_step"] == pytest.approx(1.0, rel=0.5)
