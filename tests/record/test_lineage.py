"""Which processes are ranks, and how each was started."""

from __future__ import annotations

import pytest

from leakscope.model import Moment, ProcessStart
from leakscope.record.format import file_in_job, host_name, process_of
from leakscope.record.lineage import Lineage

_AT = Moment(0, 0)


def _start(
    pid: int, parent: int, kind: str = "child", command: tuple[str, ...] = (), **env: str
) -> ProcessStart:
    return ProcessStart(f"{pid}-1", pid, parent, _AT, kind, None, command, environment=env)


def _lineage(*starts: ProcessStart) -> Lineage:
    return Lineage({start.process: start for start in starts}, "here")


def test_torchrun_launches_ranks_and_is_none() -> None:
    """Breaks when the launcher, whose own RANK is that of its machine, is taken for a rank."""
    lineage = _lineage(
        _start(1, 0, "main", RANK="1", WORLD_SIZE="2"),
        _start(2, 1, RANK="2", LOCAL_RANK="0"),
        _start(3, 1, RANK="3", LOCAL_RANK="1"),
        _start(4, 3, "worker", RANK="3", LOCAL_RANK="1"),
        _start(5, 3, "child", RANK="3", LOCAL_RANK="1"),
    )
    assert {p: place.rank for p, place in lineage.ranks().items()} == {"2-1": 2, "3-1": 3}
    assert lineage.place_of("4-1") == lineage.place_of("3-1")


def test_a_task_of_slurm_is_a_rank_and_a_batch_script_is_none() -> None:
    """Breaks when every program in an allocation is called rank 0."""
    task = _lineage(_start(1, 0, "main", SLURM_PROCID="5", SLURM_NTASKS="8"))
    assert {place.rank for place in task.ranks().values()} == {5}
    alone = _lineage(_start(1, 0, "main", SLURM_PROCID="0", SLURM_NTASKS="1"))
    assert alone.ranks() == {}


def test_restarts_are_told_apart() -> None:
    """Breaks when the second start of a rank hides the first."""
    lineage = _lineage(
        _start(1, 0, "main"),
        _start(3, 1, RANK="0", LOCAL_RANK="0", TORCHELASTIC_RESTART_COUNT="1"),
        _start(2, 1, RANK="0", LOCAL_RANK="0", TORCHELASTIC_RESTART_COUNT="0"),
    )
    assert [place.restart for place in lineage.ranks().values()] == [0, 1]


@pytest.mark.parametrize(
    ("command", "parent", "how"),
    [
        ("python train.py", "python train.py", "fork"),
        ("python -c from_multiprocessing.spawn_import_x", "python train.py", "spawn"),
        ("python -c multiprocessing.forkserver", "python -c multiprocessing.forkserver",
         "forkserver"),
        ("ffmpeg -i x", "python train.py", "exec"),
    ],
)  # fmt: skip
def test_how_a_process_was_started(command: str, parent: str, how: str) -> None:
    """Breaks when a copy of the parent is taken for a program of its own, or the other way."""
    lineage = _lineage(
        _start(1, 0, "main", tuple(parent.split())), _start(2, 1, command=tuple(command.split()))
    )
    assert lineage.started_by("2-1") == how


def test_file_names_carry_the_place_in_the_job() -> None:
    """Breaks when a name cannot be taken apart again."""
    assert file_in_job("7-1", {}) == f"7-1.{host_name()}.jsonl"
    job = {"RANK": "3", "TORCHELASTIC_RESTART_COUNT": "2"}
    assert file_in_job("7-1", job) == f"7-1.{host_name()}.rank3.restart2.jsonl"
    assert file_in_job("7-1", {"SLURM_PROCID": "4", "RANK": "x"}).endswith("rank4.restart0.jsonl")
    assert process_of(file_in_job("7-1", job)) == "7-1"
    assert process_of("7-1.jsonl") == "7-1"
    assert process_of("supervisor.jsonl") is None
