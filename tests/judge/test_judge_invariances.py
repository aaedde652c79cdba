"""What must hold for every series."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from made import MIB, saw, series

from leakscope.judge import judge
from leakscope.model import Outcome, Verdict

steady = settings(derandomize=True, deadline=None, max_examples=60)
seeds = st.integers(0, 10_000)
lengths = st.integers(24, 200)


def drawn(seed: int, n: int, kind: int) -> np.ndarray:
    """Some series: noise, a line, a warm-up, steps, a walk."""
    random = np.random.default_rng(seed)
    at = np.arange(n)
    shapes = [
        np.zeros(n),
        random.uniform(0.05, 2) * at,
        50 * (1 - np.exp(-at / random.uniform(2, n))),
        40.0 * (at > random.integers(0, n)),
        np.cumsum(random.normal(0, 1, n)),
        30.0 * (at % 9 == 0),
    ]
    return np.asarray(MIB * (500 + shapes[kind % len(shapes)] + random.normal(0, 0.5, n)))


def is_close(a: float, b: float, scale: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-4 * scale)


@given(seeds, lengths, st.integers(0, 5), st.integers(-1000, 1000))
@steady
def test_a_constant_changes_nothing(seed: int, n: int, kind: int, mebibytes: int) -> None:
    values = np.round(drawn(seed, n, kind))
    one = judge(series(values, resolution=1.0))
    other = judge(series(values + mebibytes * MIB, resolution=1.0))
    assert (one.outcome, one.shape) == (other.outcome, other.shape)
    assert is_close(one.bytes_per_step.value, other.bytes_per_step.value, MIB)


@given(seeds, lengths, st.integers(0, 5), st.sampled_from([0.25, 2.0, 1024.0]))
@steady
def test_scaled_values_have_scaled_rates(seed: int, n: int, kind: int, scale: float) -> None:
    values = drawn(seed, n, kind)
    one, other = judge(series(values)), judge(series(scale * values))
    assert (one.outcome, one.shape) == (other.outcome, other.shape)
    assert is_close(scale * one.bytes_per_step.value, other.bytes_per_step.value, scale * MIB)
    assert is_close(scale * one.bytes_per_step.low, other.bytes_per_step.low, scale * MIB)


@given(seeds, lengths, st.integers(0, 5), st.sampled_from([0.5, 4.0]))
@steady
def test_stretched_steps_have_smaller_rates(seed: int, n: int, kind: int, stretch: float) -> None:
    values = drawn(seed, n, kind)
    one = judge(series(values))
    other = judge(series(values, steps=stretch * np.arange(n)))
    assert one.outcome == other.outcome
    assert is_close(one.bytes_per_step.value, stretch * other.bytes_per_step.value, MIB)


@given(st.permutations(range(4)))
@steady
def test_the_order_of_processes_is_irrelevant(order: list[int]) -> None:
    all_series = [series(drawn(i, 80, i), process=f"{i}-1") for i in range(4)]
    expected = [judge(one) for one in all_series]
    assert [judge(all_series[i]) for i in order] == [expected[i] for i in order]


@given(seeds, st.integers(8, 300), st.floats(0, 100))
@steady
def test_flat_with_bounded_noise_is_never_growing(seed: int, n: int, width: float) -> None:
    random = np.random.default_rng(seed)
    values = 500 * MIB + MIB * random.uniform(-width, width, n)
    assert judge(series(values)).outcome is not Outcome.GROWING


@given(seeds, st.integers(24, 300), st.floats(0.02, 0.98), st.floats(0.01, 500))
@steady
def test_one_step_up_is_not_growing(seed: int, n: int, where: float, height: float) -> None:
    random = np.random.default_rng(seed)
    values = height * (np.arange(n) > where * n) + random.normal(0, 0.5, n)
    assert judge(series(MIB * values)).outcome is not Outcome.GROWING
    exact = height * (np.arange(n) > where * n)
    assert judge(series(MIB * exact, is_exact=True)).outcome is not Outcome.GROWING


@given(seeds, st.integers(40, 300), st.integers(3, 9), st.floats(5, 300), st.booleans())
@steady
def test_a_saw_tooth_with_a_flat_floor_is_not_growing(
    seed: int, n: int, teeth: int, height: float, has_floors: bool
) -> None:
    values, floors = saw(n, max(3, n // teeth), height)
    random = np.random.default_rng(seed)
    values = MIB * (values + random.normal(0, 0.5, n))
    verdict = judge(series(values, floors=floors if has_floors else ()))
    assert verdict.outcome is not Outcome.GROWING


@given(seeds, st.integers(40, 300), st.floats(60, 1000))
@steady
def test_a_line_is_growing_once_it_exceeds_the_noise(seed: int, n: int, sigmas: float) -> None:
    values = sigmas / n * np.arange(n) + np.random.default_rng(seed).normal(0, 1, n)
    assert judge(series(MIB * values)).outcome is Outcome.GROWING


@given(seeds, st.integers(30, 100), st.floats(40, 300), st.integers(2, 5))
@steady
def test_more_of_the_same_leak_is_never_steady(
    seed: int, n: int, sigmas: float, times: int
) -> None:
    whole = sigmas / n * np.arange(times * n)
    whole = MIB * (whole + np.random.default_rng(seed).normal(0, 1, times * n))
    if judge(series(whole[:n])).outcome is Outcome.GROWING:
        assert judge(series(whole)).outcome is not Outcome.STEADY


finite = st.one_of(
    st.floats(-1e18, 1e18),
    st.floats(0, 1e12).map(round).map(float),
    st.sampled_from([0.0, 1.0, -1.0, 4096.0, 1e300, -1e300, 5e-324]),
)


@given(
    st.lists(finite, max_size=60),
    st.lists(st.floats(1e-6, 1e6), min_size=60, max_size=60),
    st.sets(st.integers(0, 59)),
    st.booleans(),
    st.sampled_from([0.0, 1.0, 4096.0]),
)
@settings(derandomize=True, deadline=None, max_examples=200)
def test_no_finite_series_makes_it_fail(
    values: list[float],
    gaps: list[float],
    floors: set[int],
    is_exact: bool,
    resolution: float,
) -> None:
    kept = sorted(f for f in floors if f < len(values))
    made = series(
        values,
        steps=np.cumsum(gaps)[: len(values)],
        floors=kept,
        is_exact=is_exact,
        resolution=resolution,
    )
    check(judge(made))


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 1e9]), min_size=8, max_size=40), st.booleans())
@settings(derandomize=True, deadline=None, max_examples=150)
def test_no_series_of_few_values_makes_it_fail(values: list[float], is_exact: bool) -> None:
    check(judge(series(values, is_exact=is_exact)))


def check(verdict: Verdict) -> None:
    rate = verdict.bytes_per_step
    assert rate.low <= rate.value <= rate.high
    assert verdict.outcome in (Outcome.GROWING, Outcome.STEADY, Outcome.UNKNOWN)
    assert verdict.because.endswith(".")
    assert verdict.smallest_visible_bytes_per_step >= 0
    assert verdict.from_step <= verdict.to_step or not verdict.to_step
