"""Processes that pile up are growth, though each of them is steady."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from leakscope.judge.crowd import Crowd, find_crowds
from leakscope.judge.series import RunSeries
from make import MIB, flat, recording

STEPS = 600
PRIVATE = 20 * MIB


def crowds(
    directory: Path,
    begins: list[float],
    end_of: Callable[[float], float | None],
    walks: range = range(1, STEPS, 5),
) -> tuple[Crowd, ...]:
    """A program of 600 steps of 10 ms that starts children at these steps. Walks of the tree are
    at some steps."""
    maker = recording(directory).steps(STEPS, in_use=flat(), blocks=flat(1000))
    maker.machine(list(walks), tree_mono_ns=lambda step: step * maker.step_ns)
    for pid, began in enumerate(begins, start=100):
        maker.process(pid, kind="child", parent=1, began=began, followed=False)
        maker.sample(min(began + 5, STEPS), pid=pid, uss_bytes=PRIVATE)
        end = end_of(began)
        if end is not None:
            maker.ended(end, pid=pid, signal=9)
    return find_crowds(RunSeries(maker.done()))


def test_children_that_stay_are_a_crowd(tmp_path: Path) -> None:
    every_twenty = [float(step) for step in range(20, STEPS, 20)]
    (crowd,) = crowds(tmp_path, every_twenty, lambda began: None)
    assert crowd.parent == "1-7"
    assert len(crowd.children) == len(every_twenty)
    assert crowd.bytes_each == PRIVATE
    assert crowd.per_step == pytest.approx(1 / 20, rel=0.1)


def test_children_that_come_and_go_are_none(tmp_path: Path) -> None:
    assert crowds(tmp_path, [*range(20, STEPS, 20)], lambda began: began + 40) == ()


def test_a_pool_that_is_there_from_the_start_is_none(tmp_path: Path) -> None:
    assert crowds(tmp_path, [2.0] * 12, lambda began: None) == ()


def test_those_that_were_killed_before_the_last_walk_knew_of_them(tmp_path: Path) -> None:
    """Breaks when the last children, which no walk has met, make the number stand still: thirty
    processes were STEADY in one run of five."""
    met = [float(step) for step in range(20, 420, 20)]
    # Nothing more is known to begin from step 400 on, and all are killed at step 590.
    (crowd,) = crowds(tmp_path, met, lambda began: 590.0, walks=range(1, 405, 5))
    assert len(crowd.children) == len(met)
    assert crowd.per_step == pytest.approx(1 / 20, rel=0.1)
