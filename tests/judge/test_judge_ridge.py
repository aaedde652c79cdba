"""Values read anywhere in a step: two levels far apart, and what the line they share says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import MIB, noise, series

from leakscope.judge import judge
from leakscope.judge.ridge import ridge_of
from leakscope.judge.track import track_of
from leakscope.model import Outcome

N = 30
AT = np.arange(N, dtype=float)
RATE = 0.05 * MIB


def in_a_step(share: float, seed: int, n: int = N) -> np.ndarray:
    """1 where the row was read while the step held its arrays."""
    return (np.random.default_rng(seed).random(n) < share).astype(float)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.7])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_leak_in_both_levels_is_growth(share: float, seed: int) -> None:
    """Breaks when the two levels are taken for noise: it was called steady, flat from -204 to
    +253 KiB a step, in two runs of three of zoo/cpu/spike-train-concatenate."""
    verdict = judge(series(RATE * AT + 12 * MIB * in_a_step(share, seed), is_exact=True))
    assert verdict.outcome is Outcome.GROWING
    assert 0.8 * RATE < verdict.bytes_per_step.value < 1.25 * RATE


@pytest.mark.parametrize("n", [60, 120, 300])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_step_that_takes_more_and_gives_it_back_is_no_growth(n: int, seed: int) -> None:
    """Breaks when dips are left out and nobody asks whether they reach as low as ever."""
    work = 100 * MIB * np.linspace(1, 2, n) * in_a_step(0.7, seed, n)
    verdict = judge(series(work, is_exact=True))
    assert verdict.outcome is not Outcome.GROWING


def test_where_the_lower_level_was_hardly_seen_nothing_is_said() -> None:
    values = RATE * AT + 12 * MIB
    values[[12, 21, 26]] -= 12 * MIB
    verdict = judge(series(values, is_exact=True))
    assert verdict.outcome in (Outcome.GROWING, Outcome.UNKNOWN)


@given(st.integers(0, 10_000))
def test_noise_has_no_ridge(seed: int) -> None:
    assert ridge_of(track_of(series(noise(60, seed)))) is None


def test_a_cache_that_has_filled_up_has_left_its_ridge() -> None:
    values = np.minimum(AT, 0.6 * N) * MIB
    assert ridge_of(track_of(series(values, is_exact=True))) is None
