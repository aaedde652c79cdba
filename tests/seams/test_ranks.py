"""Ranks of torchrun beside each other: who leaks is named, and who dies takes nobody along."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from leakscope.model import Job, Outcome, Report
from running import PROGRAMS, PYTHON, Watched, run_watched, steps_of

pytestmark = pytest.mark.torch

_TORCHRUN = Path(PYTHON).parent / "torchrun"
_STEPS = 160
_DIES_AT = 60


def _run(tmp_path: Path, ranks: int, *words: str, **env: str) -> Watched:
    if not _TORCHRUN.exists():
        pytest.skip("no torchrun beside this Python")
    command = [str(_TORCHRUN), "--standalone", "--nproc-per-node", str(ranks), *words]
    return run_watched([*command, str(PROGRAMS / "rank_leaks.py")], tmp_path, env=env)


def _job(ran: Watched) -> tuple[Report, Job]:
    report = msgspec.convert(ran.report, Report)
    assert report.job is not None, ran.seen
    return report, report.job


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_rank_that_leaks_is_named(ranks: int, tmp_path: Path) -> None:
    """Breaks when the ranks are not compared, or the one that grows is not told from the rest."""
    leaking = ranks - 1
    ran = _run(tmp_path, ranks, LEAKING_RANK=str(leaking))
    assert ran.status == 0, ran.seen
    report, job = _job(ran)
    assert [one.rank for one in job.ranks] == list(range(ranks))
    assert all(one.steps == _STEPS for one in job.ranks)
    assert report.verdict is Outcome.LEAK
    assert job.deviating == (leaking,)
    assert job.says.startswith(f"Rank {leaking} deviates: ")
    assert [one.deviates for one in job.ranks] == [rank == leaking for rank in range(ranks)]
    first = report.findings[0]
    assert first.processes == (f"rank {leaking}",)
    assert first.keeper is not None
    assert first.keeper.source == "kept.append(torch.zeros(64, 256))"
    assert job.ranks[leaking].fingerprints[0] == first.fingerprint
    assert job.common_fingerprints == ()
    assert job.band[-1].largest_rank == leaking
    assert job.band[-1].largest > job.band[0].largest + (_STEPS // 2) * (64 << 10)


def test_every_file_says_whose_it_is(tmp_path: Path) -> None:
    """Breaks when rank, host or restart is missing in a name, or all ranks alike look like one."""
    ran = _run(tmp_path, 2, STEPS="70")
    names = sorted(file.name for file in ran.directory.glob("*.rank*.jsonl"))
    hosts = {name.split(".")[1] for name in names}
    assert len(hosts) == 1
    assert [name.split(".")[2:] for name in names] == [
        ["rank0", "restart0", "jsonl"],
        ["rank1", "restart0", "jsonl"],
    ]
    _, job = _job(ran)
    assert job.deviating == ()
    assert job.says == "None of the 2 ranks grows."


def test_a_rank_that_is_killed_takes_nothing_of_the_others_along(tmp_path: Path) -> None:
    """Breaks when one rank's death loses rows of another, or what it had written itself."""
    ran = _run(tmp_path, 2, DYING_RANK="1", STUBBORN="1")
    assert ran.status == 1
    recording = ran.recording()
    ranks = {place.rank: process for process, place in recording.lineage().ranks().items()}
    survivor, dead = ranks[0], ranks[1]
    assert steps_of(recording, survivor, "optimizer")[-1] > 0.8 * _STEPS
    written = steps_of(recording, dead, "optimizer")
    assert 20 <= written[-1] <= _DIES_AT
    assert recording.torn_lines <= 1
    _, job = _job(ran)
    assert [one.rank for one in job.ranks] == [0, 1]


def test_elastic_restarts_are_rows_of_their_own(tmp_path: Path) -> None:
    """Breaks when the second start of a rank is taken for the first, or overwrites its file."""
    ran = _run(tmp_path, 2, "--max-restarts", "1", DYING_RANK="1", ALONE="1")
    assert ran.status == 0, ran.seen
    _, job = _job(ran)
    assert [(one.rank, one.restart) for one in job.ranks] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [one.process for one in job.ranks][2:] == ["rank 1 restart 0", "rank 1 restart 1"]
    assert (job.ranks[3].steps or 0) > _DIES_AT
    names = {file.name.partition(".rank")[2] for file in ran.directory.glob("*.rank*")}
    assert {f"{rank}.restart{start}.jsonl" for rank in (0, 1) for start in (0, 1)} <= names


def test_ranks_that_no_launcher_told_are_ranks(tmp_path: Path) -> None:
    """Breaks when the ranks of torch.multiprocessing.spawn are just processes."""
    ran = run_watched([PROGRAMS / "spawned_ranks.py"], tmp_path)
    assert ran.status == 0, ran.seen
    report, job = _job(ran)
    assert [(one.rank, one.process, one.steps) for one in job.ranks] == [
        (0, "rank 0", 40),
        (1, "rank 1", 40),
    ]
    assert {one.started_by for one in report.processes if one.rank is not None} == {"spawn"}
