"""Series in, the outcome a person would give out."""

from __future__ import annotations

import time

import numpy as np
import pytest
from made import MIB, noise, saw, series

from leakscope.judge import judge
from leakscope.model import Outcome, Shape, Verdict

N = 240
AT = np.arange(N, dtype=float)
BASE = 800 * MIB


def outcome(values: np.ndarray, **more: object) -> Verdict:
    return judge(series(BASE + values, **more))  # type: ignore[arg-type]


def test_a_line_is_growth_with_its_rate() -> None:
    verdict = outcome(0.1 * MIB * AT + noise(N))
    assert verdict.outcome is Outcome.GROWING
    assert verdict.shape is Shape.LINEAR
    assert verdict.bytes_per_step.low < 0.1 * MIB < verdict.bytes_per_step.high
    assert verdict.bytes_per_step.high < 0.13 * MIB
    assert "per step" in verdict.because or "/step" in verdict.because
    assert verdict.from_step >= N // 3
    assert verdict.to_step == N - 1


def test_the_judge_never_says_leak() -> None:
    assert outcome(1.0 * MIB * AT).outcome is Outcome.GROWING


@pytest.mark.parametrize("start", [0.2, 0.3, 0.4])
def test_growth_that_starts_late_is_found(start: float) -> None:
    verdict = outcome(0.15 * MIB * np.maximum(0, AT - start * N) + noise(N))
    assert verdict.outcome is Outcome.GROWING


@pytest.mark.parametrize("start", [0.4, 0.5, 0.6])
def test_an_exact_counter_shows_growth_that_starts_later(start: float) -> None:
    verdict = outcome(0.1 * MIB * np.maximum(0, AT - start * N), is_exact=True)
    assert verdict.outcome is Outcome.GROWING


def test_growth_under_a_warm_up_is_found() -> None:
    verdict = outcome(0.15 * MIB * AT + 200 * MIB * (1 - np.exp(-AT / 12)) + noise(N))
    assert verdict.outcome is Outcome.GROWING
    assert verdict.bytes_per_step.low < 0.15 * MIB < verdict.bytes_per_step.high


def test_growth_under_jumps_larger_than_all_of_it_is_found() -> None:
    jumps = 70 * MIB * (AT > 30) + 90 * MIB * (AT > 110) + 40 * MIB * (AT > 180)
    verdict = outcome(0.15 * MIB * AT + jumps + noise(N))
    assert verdict.outcome is Outcome.GROWING
    assert verdict.bytes_per_step.high < 0.4 * MIB


def test_growth_in_chunks_is_a_staircase() -> None:
    verdict = outcome(4 * MIB * np.floor(AT / 30), is_exact=True)
    assert verdict.outcome is Outcome.GROWING
    assert verdict.shape is Shape.STAIRCASE
    assert verdict.size_bytes == pytest.approx(4 * MIB)
    assert verdict.steps_at[:3] == (30.0, 60.0, 90.0)


def test_growth_under_a_saw_tooth_is_found_at_the_floors() -> None:
    teeth, floors = saw(N, 12, 80 * MIB)
    verdict = outcome(0.15 * MIB * AT + teeth + noise(N), floors=floors)
    assert verdict.outcome is Outcome.GROWING
    assert "full collections" in verdict.because


def test_a_saw_tooth_with_flat_floors_is_steady() -> None:
    teeth, floors = saw(N, 12, 80 * MIB)
    verdict = outcome(teeth + noise(N), floors=floors)
    assert verdict.outcome is Outcome.STEADY
    assert verdict.shape is Shape.SAW_TOOTH
    assert verdict.period_steps == 12


def test_growth_between_evaluations_is_found() -> None:
    evaluation = 300 * MIB * ((AT % 25) < 5)
    verdict = outcome(0.15 * MIB * AT + evaluation + noise(N))
    assert verdict.outcome is Outcome.GROWING


def test_spikes_are_periodic() -> None:
    verdict = outcome(300 * MIB * (AT % 25 == 3) + noise(N))
    assert verdict.outcome is Outcome.STEADY
    assert verdict.shape is Shape.PERIODIC
    assert verdict.period_steps == 25
    assert verdict.size_bytes == pytest.approx(300 * MIB, rel=0.1)


def test_one_step_is_a_step() -> None:
    verdict = outcome(50 * MIB * (AT > 150) + noise(N))
    assert verdict.outcome is Outcome.STEADY
    assert verdict.shape is Shape.STEP
    assert verdict.steps_at == (151.0,)
    assert verdict.size_bytes == pytest.approx(50 * MIB, rel=0.1)


def test_a_high_water_mark_is_steady() -> None:
    sizes = np.random.default_rng(3).lognormal(0, 0.5, N) * 40 * MIB
    verdict = outcome(np.maximum.accumulate(sizes) + noise(N, sd=0.1 * MIB))
    assert verdict.outcome is Outcome.STEADY
    assert verdict.shape in (Shape.HIGH_WATER, Shape.STEP)


def test_a_warm_up_that_settled_is_steady() -> None:
    verdict = outcome(200 * MIB * (1 - np.exp(-AT / 15)) + noise(N))
    assert verdict.outcome is Outcome.STEADY
    assert verdict.shape is Shape.WARM_UP


def test_a_cache_that_is_full_is_filling() -> None:
    verdict = outcome(200 * MIB * np.minimum(1, AT / 100) + noise(N))
    assert verdict.outcome is Outcome.STEADY
    assert verdict.shape is Shape.FILLING


def test_a_curve_that_is_still_bending_is_unknown() -> None:
    verdict = outcome(200 * MIB * (1 - np.exp(-AT / 90)) + noise(N, sd=0.1 * MIB))
    assert verdict.outcome is Outcome.UNKNOWN
    assert "slowing" in verdict.because


def test_a_later_plateau_takes_the_verdict_back() -> None:
    filling = 200 * MIB * np.minimum(1, AT / 120) + noise(N)
    assert judge(series(filling[:110])).outcome is Outcome.GROWING
    assert judge(series(filling)).outcome is not Outcome.GROWING


def test_a_flat_series_names_the_smallest_leak_it_would_have_shown() -> None:
    flat = noise(N)
    verdict = judge(series(BASE + flat))
    assert verdict.outcome is Outcome.STEADY
    assert verdict.shape is Shape.FLAT
    seen = verdict.smallest_visible_bytes_per_step
    assert 0 < seen < 0.2 * MIB
    assert judge(series(BASE + flat + 1.1 * seen * AT)).outcome is Outcome.GROWING


def test_growth_that_does_not_matter_is_steady() -> None:
    values = BASE + 0.1 * MIB * AT + noise(N)
    verdict = judge(series(values), smallest_that_matters=MIB)
    assert verdict.outcome is Outcome.STEADY
    assert "does not matter" in verdict.because
    assert judge(series(values), smallest_that_matters=0.01 * MIB).outcome is Outcome.GROWING


@pytest.mark.parametrize("n", range(8))
def test_fewer_than_eight_values_are_unknown(n: int) -> None:
    verdict = judge(series(MIB * np.arange(n)))
    assert verdict.outcome is Outcome.UNKNOWN
    assert "60 steps" in verdict.because


def test_an_exact_counter_needs_three_and_eight_values() -> None:
    assert judge(series(100 + 4096 * np.arange(11), is_exact=True)).outcome is Outcome.GROWING
    unequal = np.cumsum(np.random.default_rng(1).uniform(1, 40, 11))
    assert judge(series(unequal, is_exact=True)).outcome is Outcome.GROWING


def test_twelve_noisy_values_of_a_clean_line_are_enough() -> None:
    values = BASE + 5 * MIB * np.arange(12) + noise(12, sd=0.2 * MIB)
    steps = np.arange(12) * 7.3
    verdict = judge(series(values, steps=steps, resolution=4096))
    assert verdict.outcome is Outcome.GROWING
    assert verdict.bytes_per_step.value == pytest.approx(5 * MIB / 7.3, rel=0.1)


def test_rates_use_the_real_positions() -> None:
    steps = np.cumsum(np.random.default_rng(5).uniform(0.2, 6, N))
    verdict = judge(series(BASE + 0.1 * MIB * steps + noise(N), steps=steps))
    assert verdict.outcome is Outcome.GROWING
    assert verdict.bytes_per_step.low < 0.1 * MIB < verdict.bytes_per_step.high


def test_values_that_are_no_numbers_are_left_out() -> None:
    values = BASE + 0.1 * MIB * AT + noise(N)
    values[[3, 50, 120]] = np.nan
    assert judge(series(values)).outcome is Outcome.GROWING


def test_a_million_values_take_a_moment() -> None:
    n = 1_000_000
    long = series(BASE + 1000.0 * np.arange(n) + np.random.default_rng(0).normal(0, MIB, n))
    began = time.perf_counter()
    verdict = judge(long)
    assert time.perf_counter() - began < 3.0  # 0.1 s measured on two shared cores
    assert verdict.outcome is Outcome.GROWING
    assert verdict.bytes_per_step.value == pytest.approx(1000, rel=0.01)


def test_what_surely_rises_is_not_called_flat() -> None:
    """Breaks when a verdict says flat, and an interval above zero: rows of a run by the clock, four
    of them read in another part of a step."""
    steps = [0.6, 5.8, 11.6, 18.2, 31.6, 37.7, 44.6, 52.3, 60.8, 70.2, 84.1, 90.1, 96.5, 103.2]
    steps += [110.2, 117.5, 125.2, 133.3, 141.9, 150.8, 160.2, 170.0, 180.4, 191.2, 203.9, 217.1]
    steps += [230.9, 245.4]
    mib = [18.74, 18.67, 19.05, 19.62, 19.97, 19.96, 20.13, 20.31, 20.51, 20.75, 21.09, 21.23]
    mib += [11.76, 21.68, 21.64, 12.64, 12.95, 22.17, 22.37, 19.38, 22.97, 22.99, 23.22, 23.46]
    mib += [23.74, 24.03, 24.35, 24.7]
    verdict = judge(series([one * MIB for one in mib], steps=steps, is_exact=True))
    assert verdict.outcome is not Outcome.STEADY


def test_pages_that_came_in_the_last_moments_are_not_called_growth() -> None:
    """Breaks when an interval from minus to plus is GROWING (a run of 0.4 s, resident memory)."""
    late = (25.09, 25.45, 25.82, 26.16, 26.53, 26.92, 27.25, 27.6, 27.9, 28.22, 28.56, 28.95)
    mib = (*[24.76] * 3, *[24.77] * 53, *late, 29.31, 29.66, 29.95, 29.96)
    verdict = judge(series([one * MIB for one in mib]))
    assert verdict.outcome is not Outcome.GROWING


def _after_epochs(last: float) -> Verdict:
    """As zoo/cpu/outputs-of-every-epoch was recorded on a busy machine: rows get rare, the state
    of the optimizer comes at the start, 1.96 MiB after each 50 steps up to the step `last`."""
    steps = [0, 5, 10, 15, 20, 25, 31, 38, 44, 51, 59, 64, 73, 78, 83, 89, 96, 101, 109, 118]
    steps += [126, 134, 142, 150, 156, 166, 176, 186, 195, 203, 210, 215, 225, 243, 258, 281]
    kept = [1.96 * (min(step, last) // 50) for step in steps]
    start = [0.53 * (step > 0) for step in steps]
    values = [MIB * (114.69 + a + b) for a, b in zip(kept, start, strict=True)]
    return judge(series(values, steps=[float(step) for step in steps], is_exact=True))


def test_a_few_rises_that_are_alike_are_not_called_rare() -> None:
    """Breaks when outputs that are kept after each epoch are the largest request so far."""
    verdict = _after_epochs(last=300)
    assert verdict.outcome in (Outcome.UNKNOWN, Outcome.GROWING)
    assert verdict.bytes_per_step.low > 0
    assert verdict.bytes_per_step.value == pytest.approx(1.96 * MIB / 50, rel=0.15)


def test_a_few_rises_that_have_stopped_are_steady() -> None:
    assert _after_epochs(last=110).outcome is Outcome.STEADY


def test_what_may_have_doubled_is_not_called_flat() -> None:
    """Breaks when twenty values of a program that makes and drops most of its memory in its steps
    are STEADY: growth by twice that would not have shown."""
    scatter = 6 * MIB * np.sign(noise(20, seed=2))
    verdict = judge(series(9 * MIB + scatter, is_exact=True))
    assert verdict.outcome is Outcome.UNKNOWN
    assert "more than there is" in verdict.because
    assert judge(series(180 * MIB + scatter, is_exact=True)).outcome is Outcome.STEADY
