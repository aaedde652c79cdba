"""Rows of a real recording lie close together at first and thin out: that changes no verdict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import MIB, series

from leakscope.judge import judge
from leakscope.model import Outcome

KB = 1000.0
PER_STEP = 100 * KB
often = settings(derandomize=True, deadline=None, max_examples=300)
seeds = st.integers(0, 10_000)
counts = st.integers(12, 90)
spacings = st.sampled_from(["geometric", "gaps", "bursts", "even"])
jitters = st.sampled_from([0.0, 100.0, 3 * KB])


def steps_at(random: np.random.Generator, n: int, spacing: str) -> np.ndarray:
    """At most `n` whole steps, without duplicates."""
    gaps = {
        "geometric": np.geomspace(1, random.uniform(2, 20), n),
        "gaps": random.integers(1, 12, n).astype(float),
        "bursts": np.where(random.random(n) < 0.15, random.integers(5, 20, n), 1.0),
        "even": np.ones(n),
    }[spacing]
    return np.unique(np.round(np.cumsum(gaps)))


def jitter_of(random: np.random.Generator, n: int, width: float, is_rare: bool) -> np.ndarray:
    """Exact bytes that come and go by design: always or now and then."""
    values = random.uniform(-width, width, n)
    return np.round(values * (random.random(n) < 0.3) if is_rare else values)


def passing(random: np.random.Generator, n: int) -> np.ndarray:
    """One-sided excursions, never in two neighbouring rows; none in fewer than 24 rows."""
    above = np.zeros(n)
    if n < 24:
        return above
    at = random.choice(np.arange(1, n - 1, 4), max(1, n // 12), replace=False)
    above[at] = random.uniform(0.2, 40) * MIB
    return above


@given(seeds, counts, spacings, jitters, st.booleans(), st.booleans())
@often
def test_a_line_is_growing_however_it_was_sampled(
    seed: int, n: int, spacing: str, width: float, is_rare: bool, has_excursions: bool
) -> None:
    random = np.random.default_rng(seed)
    at = steps_at(random, n, spacing)
    values = 50 * MIB + PER_STEP * at + jitter_of(random, len(at), width, is_rare)
    if has_excursions:
        values = values + passing(random, len(at))
    verdict = judge(series(values, steps=at, is_exact=True))
    assert verdict.outcome is Outcome.GROWING, verdict.because
    assert verdict.bytes_per_step.value == pytest.approx(PER_STEP, rel=0.05)


@given(seeds, counts, spacings, jitters, st.booleans(), st.booleans())
@often
def test_a_flat_counter_is_not_growing_however_it_was_sampled(
    seed: int, n: int, spacing: str, width: float, is_rare: bool, has_excursions: bool
) -> None:
    random = np.random.default_rng(seed)
    at = steps_at(random, n, spacing)
    values = 50 * MIB + jitter_of(random, len(at), width, is_rare)
    if has_excursions:
        values = values + passing(random, len(at))
    assert judge(series(values, steps=at, is_exact=True)).outcome is not Outcome.GROWING
