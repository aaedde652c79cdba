"""The situations people asked about, as real programs, answered with what is true about them.

Each runs once under `leakscope run`; what is checked is what the user is told.
"""

from __future__ import annotations

import pathlib

import msgspec
import pytest

from leakscope.model import Outcome, Report
from running import PROGRAMS, run_watched

pytestmark = pytest.mark.torch


def run_program(directory: pathlib.Path, name: str, **env: str) -> Report:
    watched = run_watched([PROGRAMS / name], directory, env=env)
    assert watched.status == 0, watched.stderr.decode()
    return msgspec.convert(watched.report, Report)


def lead(report: Report) -> float:
    """Growth of the live bytes, per step."""
    for verdict in report.verdicts:
        if verdict.series.metric == "heap.in_use_bytes":
            return verdict.bytes_per_step.high
    raise AssertionError("in-use bytes were not judged")


def test_0_2_a_product_that_is_only_rebound(tmp_path: pathlib.Path) -> None:
    """Not a leak, at most one generation is alive, and the peak is shown with its parts."""
    report = run_program(tmp_path, "big_product.py")
    assert report.verdict is Outcome.STEADY
    assert lead(report) < 4096, "a product kept would be 4 MiB a step"
    assert any("one generation" in note for note in report.notes)
    assert report.peak is not None
    assert sum(report.peak.parts.values()) == report.peak.total_bytes


def test_3_1_plain_training(tmp_path: pathlib.Path) -> None:
    """Steady, with the smallest leak that could have been seen."""
    report = run_program(tmp_path, "plain_training.py")
    assert report.verdict is Outcome.STEADY
    assert report.steps == 200
    assert report.steps_from == "optimizer"
    visible = [v.smallest_visible_bytes_per_step for v in report.verdicts]
    assert min(visible) > 0


def test_3_2_optimizer_state(tmp_path: pathlib.Path) -> None:
    """One step up at the first optimizer step, bytes by role, then flat."""
    report = run_program(tmp_path, "plain_training.py", ADAM="1")
    assert report.verdict is Outcome.STEADY
    note = next(one.says for one in report.harmless if one.rule == "LS002")
    assert "2.0 times the parameters" in note
    assert report.peak is not None
    assert {"parameters", "gradients", "optimizer state"} <= set(report.peak.parts)
    state, parameters = report.peak.parts["optimizer state"], report.peak.parts["parameters"]
    assert state == pytest.approx(2 * parameters, rel=0.01)


def test_3_3_checkpoints(tmp_path: pathlib.Path) -> None:
    """A periodic transient, aligned with the saves, with its size; not a leak."""
    report = run_program(tmp_path, "saves.py")
    assert report.verdict is Outcome.STEADY
    note = next(one.says for one in report.harmless if one.rule == "LS003")
    assert "10 checkpoints" in note
    assert "every 20" in note
    assert "MiB higher while one is written" in note
    assert "not a leak" in note


def test_2_1_temporaries(tmp_path: pathlib.Path) -> None:
    """Live and held are told apart, and the allocator is named."""
    report = run_program(tmp_path, "temporaries.py")
    assert report.verdict is Outcome.STEADY
    assert report.peak is not None
    assert report.peak.parts["freed, held by the allocator"] > 4 << 20
    assert any("glibc" in one.says for one in report.harmless)


def test_2_2_python_objects_in_workers(tmp_path: pathlib.Path) -> None:
    """Pages copied are told from memory asked for, process by process; grandchildren count."""
    report = run_program(tmp_path, "objects_in_workers.py")
    assert report.verdict is Outcome.LEAK
    first = report.findings[0]
    assert first.rule == "LS201"
    assert first.processes == ("worker 0", "worker 1")
    assert first.fix is not None
    assert "NumPy" in first.fix.text
    workers = [one for one in report.processes if one.kind == "worker"]
    assert [one.name for one in workers] == ["worker 0", "worker 1"]
    for worker in workers:
        assert worker.started_by == "fork"
        assert worker.last_uss_bytes is not None
        assert worker.last_shared_bytes is not None
        assert worker.last_pss_bytes is not None
        assert worker.last_uss_bytes <= worker.last_pss_bytes
        assert worker.copied_bytes is not None
        assert worker.allocated_bytes is not None
        assert worker.copied_bytes > 8 << 20
        assert worker.copied_bytes > worker.allocated_bytes
    called = [one for one in report.processes if one.parent_pid in {w.pid for w in workers}]
    # The last of them may end with the program.
    assert sum(one.ended_early for one in called) >= len(called) - 2 > 0
    note = next(note for note in report.notes if "ended before the program did" in note)
    assert "children of its children" in note


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_2_3_a_table_in_every_worker(method: str, tmp_path: pathlib.Path) -> None:
    """Copies in spawned workers are counted and named; forked workers share, and are not blamed."""
    watched = run_watched([PROGRAMS / "spawned_pool.py", method], tmp_path)
    assert watched.status == 0, watched.stderr.decode()
    report = msgspec.convert(watched.report, Report)
    assert report.verdict is not Outcome.LEAK
    workers = [one for one in report.processes if one.kind == "worker"]
    assert len(workers) == 3
    assert {one.started_by for one in workers} == {method}
    assert all(one.name.startswith("pool worker ") for one in workers)
    told = [one.says for one in report.harmless if one.rule == "LS010"]
    if method == "fork":
        assert told == []
        return
    assert told[0].startswith("3 processes started by spawn each hold their own `TABLE` of ")
    assert "3 × 22.9 MiB" in told[0]
    assert "a forked one would share" in told[0]


def test_a_process_that_is_killed_at_once_has_its_name(tmp_path: pathlib.Path) -> None:
    watched = run_watched([PROGRAMS / "short_lived.py"], tmp_path)
    assert watched.status == 0, watched.stderr.decode()
    report = msgspec.convert(watched.report, Report)
    assert [one.name for one in report.processes if one.kind == "child"] == ["process short"]


@pytest.mark.parametrize("how", ["stays", "ends", "unclaimed"])
def test_processes_that_are_the_leak_themselves(how: str, tmp_path: pathlib.Path) -> None:
    """Processes never ended are a finding; those that end are none, and zombies are told of."""
    watched = run_watched([PROGRAMS / "never_joined.py", how], tmp_path)
    assert watched.status == 0, watched.stderr.decode()
    report = msgspec.convert(watched.report, Report)
    crowds = [one for one in report.findings if one.rule == "LS206"]
    zombies = [note for note in report.notes if "zombies" in note]
    if how != "stays":
        assert crowds == []
        assert report.verdict is not Outcome.LEAK
        assert bool(zombies) == (how == "unclaimed")
        return
    assert report.verdict is Outcome.LEAK
    assert crowds[0].count_per_step == pytest.approx(0.2, rel=0.2)
    assert crowds[0].bytes_per_step > 0.2 * (4 << 20) * 0.8
    assert crowds[0].keeper is not None
    assert "subprocess.Popen(" in (crowds[0].keeper.source or "")
    assert crowds[0].processes == ("children of main",)
    assert zombies == []
