"""Recordings of several machines become one, with one clock and no name used twice."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from leakscope.analysis import analyse
from leakscope.cli import main
from leakscope.errors import LeakscopeError
from leakscope.model import Run
from leakscope.record.format import RUN_FILE, decode_run, write_run
from leakscope.record.merging import merge
from leakscope.record.reader import load
from make import GIB, KIB, SECOND, Maker, flat, line, wobble

_LATER = 5_000 * SECOND


def _machine(
    tmp_path: Path, host: str, ranks: tuple[int, ...], leaking: int, ahead_ns: int = 0
) -> str:
    """One machine's part of a job; its own clock began `ahead_ns` before the others'."""
    directory = tmp_path / host
    maker = Maker(directory, limit_bytes=8 * GIB, limit_from="RAM of this machine").process()
    maker.machine(range(1, 200, 10), available_bytes=flat(4 * GIB))
    for rank in ranks:
        pid = 10 + rank - ranks[0]
        local = str(rank - ranks[0])
        maker.process(pid, kind="process", parent=1, RANK=str(rank), LOCAL_RANK=local)
        shape = line(30 * KIB) if rank == leaking else flat()
        maker.steps(200, pid=pid, in_use=wobble(shape, 2 * KIB), rss=wobble(shape, 40 * KIB))
        maker.resident(range(1, 200, 5), wobble(shape, 40 * KIB), pid=pid)
    maker.ended(200)
    run = decode_run((directory / RUN_FILE).read_bytes())
    named = msgspec.structs.replace(run.machine, host=f"{host}.cluster.local")
    # The wall says the same everywhere; what the machine's own clock says differs.
    write_run(
        str(directory),
        msgspec.structs.replace(run, machine=named, started_wall_ns=-ahead_ns),
    )
    return str(directory)


def test_two_machines_are_one_job(tmp_path: Path) -> None:
    """Breaks when processes with the same number are mixed up, or a rank is on the wrong clock."""
    first = _machine(tmp_path, "node-a", (0, 1), leaking=3)
    second = _machine(tmp_path, "node-b", (2, 3), leaking=3, ahead_ns=_LATER)
    merged = merge([first, second], str(tmp_path / "job"))
    assert list(merged.hosts) == ["node-a", "node-b"]
    recording = load(str(tmp_path / "job"))
    assert len(recording.starts) == 6
    assert len(recording.followed) == 6
    report = analyse(recording)
    assert report.job is not None
    assert [(one.rank, one.host) for one in report.job.ranks] == [
        (0, "node-a"),
        (1, "node-a"),
        (2, "node-b"),
        (3, "node-b"),
    ]
    assert report.job.deviating == (3,)
    names = {one.name for one in report.processes}
    assert names == {"main on node-a", "main on node-b", "rank 0", "rank 1", "rank 2", "rank 3"}
    assert report.forecast is not None
    assert report.forecast.bytes_per_step.value == pytest.approx(30 * KIB, rel=0.1)
    moments = [recording.columns(p, "optimizer")["mono_ns"][0] for p in recording.followed
               if "optimizer" in recording.sources(p)]  # fmt: skip
    assert max(m for m in moments if m) - min(m for m in moments if m) == _LATER


def test_merged_recording_is_read_like_any_other(tmp_path: Path) -> None:
    """Breaks when the commands after a merge need to know that there was one."""
    first = _machine(tmp_path, "node-a", (0,), leaking=1)
    second = _machine(tmp_path, "node-b", (1,), leaking=1)
    out = str(tmp_path / "job")
    assert main(["merge", first, second, "-o", out]) == 0
    assert main(["report", out, "-o", str(tmp_path / "report.md")]) == 0
    assert "Rank 1 deviates" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert isinstance(decode_run(Path(out, RUN_FILE).read_bytes()), Run)


def test_same_name_and_number_on_two_machines_stay_two(tmp_path: Path) -> None:
    """Breaks when containers that are called alike lose a process."""
    first = _machine(tmp_path / "x", "box", (0,), leaking=9)
    second = _machine(tmp_path / "y", "box", (1,), leaking=9)
    merge([first, second], str(tmp_path / "job"))
    recording = load(str(tmp_path / "job"))
    assert len(recording.starts) == 4
    assert {place.rank for place in recording.lineage().ranks().values()} == {0, 1}


def test_what_stands_in_the_way_is_said(tmp_path: Path) -> None:
    """Breaks when a merge overwrites something, or takes what is no recording."""
    first = _machine(tmp_path, "node-a", (0,), leaking=9)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    with pytest.raises(LeakscopeError, match="cannot write"):
        merge([first, first], str(tmp_path / "full"))
    with pytest.raises(LeakscopeError, match="is not a recording"):
        merge([first, str(tmp_path)], str(tmp_path / "job"))
    assert main(["merge", first, "-o", str(tmp_path / "one")]) == 2
