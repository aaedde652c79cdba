"""Which rank stands out, and the band over all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakscope.judge.ranks import Pace, band_over, deviating
from leakscope.model import Outcome, Rate, Series, SeriesKey


def _pace(value: float, outcome: Outcome = Outcome.GROWING) -> Pace:
    return Pace(outcome, Rate(value, 0.98 * value, 1.02 * value))


def _series(rank: int, start: float, per_step: float) -> Series:
    steps = tuple(float(step) for step in range(1, 101))
    values = tuple(start + per_step * step for step in steps)
    return Series(SeriesKey("heap.in_use_bytes", str(rank)), "bytes", steps, values)


def test_one_that_grows_among_steady_ones_stands_out() -> None:
    paces = {rank: _pace(100.0, Outcome.STEADY) for rank in range(4)}
    assert deviating(paces | {2: _pace(50_000.0)}) == (2,)
    assert deviating({0: _pace(0.0, Outcome.STEADY), 1: _pace(9_000.0)}) == (1,)


def test_none_stands_out_where_all_grow_alike() -> None:
    assert deviating({rank: _pace(50_000.0 + 300 * rank) for rank in range(8)}) == ()


def test_a_rank_that_is_not_judged_to_grow_does_not_stand_out() -> None:
    paces = {rank: _pace(0.0, Outcome.STEADY) for rank in range(4)}
    assert deviating(paces | {3: _pace(90_000.0, Outcome.UNKNOWN)}) == ()


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=40), st.randoms())
def test_the_order_of_ranks_does_not_matter(rates: list[float], random: object) -> None:
    paces = {rank: _pace(rate) for rank, rate in enumerate(rates)}
    backwards = dict(reversed(paces.items()))
    assert set(deviating(paces)) == set(deviating(backwards))


def test_the_band_holds_the_ranks() -> None:
    series = {rank: _series(rank, 1000.0 * rank, 0.0) for rank in range(11)}
    series[7] = _series(7, 0.0, 500.0)
    points = band_over(series)
    assert len(points) == 20
    assert points[-1].largest_rank == 7
    assert points[0].low <= points[0].median <= points[0].high <= points[0].largest
    assert points[-1].median == pytest.approx(5000.0)
    assert [point.step for point in points] == sorted(point.step for point in points)


def test_no_band_without_steps_in_common() -> None:
    early = Series(SeriesKey("x", "0"), "bytes", (1.0, 2.0), (1.0, 1.0))
    late = Series(SeriesKey("x", "1"), "bytes", (8.0, 9.0), (1.0, 1.0))
    assert band_over({0: early, 1: late}) == ()
    assert band_over({0: early}) == ()
