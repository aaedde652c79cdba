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
