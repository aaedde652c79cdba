"""A packed recording says what the recording said, from a folder or from anywhere else."""

from __future__ import annotations

import builtins
import json
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from leakscope.analysis import analyse
from leakscope.cli import main
from leakscope.export.packed import read_packed
from leakscope.export.parquet import pack
from leakscope.export.statistics import Statistics, band_of_packed
from leakscope.judge.series import RunSeries
from leakscope.model import Report
from make import KIB, MIB
from make_job import job

pytest.importorskip("pyarrow", reason="needs leakscope[scale]")
pytest.importorskip("duckdb", reason="needs leakscope[scale]")
fsspec = pytest.importorskip("fsspec", reason="needs leakscope[scale]")


def test_report_of_a_packed_recording_is_the_same(tmp_path: Path) -> None:
    """Breaks when packing loses a record, a row, an order or a count."""
    directory = job(tmp_path / "job")
    with (tmp_path / "job" / "100-7.jsonl").open("ab") as torn:
        torn.write(b'{"type":"mark","at"')
    out = str(tmp_path / "job.packed")
    packed = pack(directory, out)
    assert packed.rows == 4 * 300
    assert packed.torn_lines == 1
    assert main(["report", directory, "-o", str(tmp_path / "a.json")]) == 0
    assert main(["report", out, "-o", str(tmp_path / "b.json")]) == 0
    plain, again = (json.loads((tmp_path / name).read_text()) for name in ("a.json", "b.json"))
    band, all_rows = (one["job"].pop("band") for one in (plain, again))
    assert again == plain
    assert plain["job"]["deviating"] == [2]
    assert [point["largest_rank"] for point in all_rows] == [2] * 20
    for few, every in zip(band, all_rows, strict=True):
        assert every["median"] == pytest.approx(few["median"], rel=0.001)


def test_anything_that_fsspec_reaches_is_read(tmp_path: Path) -> None:
    """Breaks when a packed recording can only be read from this machine's disk."""
    out = str(tmp_path / "job.packed")
    pack(job(tmp_path / "job"), out)
    files = fsspec.filesystem("memory")
    files.put(out, "/bucket/job", recursive=True)
    far = "memory://bucket/job"
    report = analyse(read_packed(far), make_band=partial(band_of_packed, far))
    near = analyse(read_packed(out), make_band=partial(band_of_packed, out))
    assert report.job is not None
    assert report == near
    assert len(report.job.band) == 20
    files.rm("/bucket", recursive=True)


def test_statistics_over_all_rows(tmp_path: Path) -> None:
    """Breaks when DuckDB reads other rows than those of the ranks' own steps."""
    out = str(tmp_path / "job.packed")
    pack(job(tmp_path / "job", ranks=3, leaking=1), out)
    run = RunSeries(read_packed(out))
    sources = {place.rank: (process, "optimizer") for process, place in run.lineage.ranks().items()}
    found = Statistics(out).ranks(sources)
    assert [one.rank for one in found] == [0, 1, 2]
    assert [one.rows for one in found] == [300, 300, 300]
    assert found[1].slope_bytes_per_step == pytest.approx(40 * KIB, rel=0.01)
    assert found[1].r_squared > 0.99
    assert abs(found[0].slope_bytes_per_step) < KIB
    assert found[1].largest_bytes == pytest.approx(100 * MIB + 300 * 40 * KIB, abs=4 * KIB)


def test_long_runs_are_thinned_out_and_say_the_same(tmp_path: Path) -> None:
    """Breaks when the rows left out change who grows, how fast, or how long the run was."""
    directory = job(tmp_path / "job", ranks=2, steps=5000, leaking=1)
    out = str(tmp_path / "job.packed")
    pack(directory, out)
    recording = read_packed(out, most_rows=400)
    assert max(len(recording.columns(p, "optimizer")["step"]) for p in ("100-7", "101-7")) <= 402
    thin, whole = analyse(recording), analyse(read_packed(out, most_rows=10**6))
    assert thin.job is not None
    assert whole.job is not None
    assert thin.steps == whole.steps == 5000
    assert thin.job.deviating == whole.job.deviating == (1,)
    rates = [one.ranks[1].bytes_per_step for one in (thin.job, whole.job)]
    assert rates[0].value == pytest.approx(rates[1].value, rel=0.01)
    assert [f.fingerprint for f in thin.findings] == [f.fingerprint for f in whole.findings]
    peaks = [[p.peak_rss_bytes for p in one.processes] for one in (thin, whole)]
    assert peaks[0] == peaks[1]


def test_missing_package_is_said_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when a missing extra shows as a traceback, or names another one."""
    directory = job(tmp_path / "job")
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] in ("pyarrow", "ray"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert main(["pack", directory]) == 2
    assert "pip install 'leakscope[scale]'" in capsys.readouterr().err
    assert main(["pack", directory, "--engine", "ray"]) == 2
    assert "pip install 'leakscope[ray]'" in capsys.readouterr().err
    assert main(["report", directory]) == 0, "reading a recording itself needs none of them"


def test_what_cannot_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a wrong address, a damaged file or a taken place ends in a traceback."""
    directory, out = job(tmp_path / "job"), tmp_path / "job.packed"
    assert main(["report", "memory://nowhere"]) == 2
    assert "is not a recording" in capsys.readouterr().err
    assert main(["report", "nonsense://x"]) == 2
    assert "cannot be reached" in capsys.readouterr().err
    assert main(["pack", directory]) == 0
    assert main(["pack", directory]) == 2
    assert "exists already" in capsys.readouterr().err
    next(out.glob("pulses/*/*.parquet")).write_bytes(b"PAR1")
    assert main(["report", str(out)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_the_report_reads_back_as_one(tmp_path: Path) -> None:
    """Breaks when a number from DuckDB or Arrow has no place in report.json."""
    out = str(tmp_path / "job.packed")
    pack(job(tmp_path / "job"), out)
    main(["report", out, "-o", str(tmp_path / "b.json")])
    report = msgspec.json.decode((tmp_path / "b.json").read_bytes(), type=Report)
    assert report.job is not None
