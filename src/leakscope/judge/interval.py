"""Levels in, Rate out: the slope and how far off it may be."""

from __future__ import annotations

import numpy as np

from leakscope.judge.drift import Drift, far_out_in_t
from leakscope.judge.excursions import Ground
from leakscope.judge.levels import Levels
from leakscope.judge.rivals import CURVED, Contest, slope_of
from leakscope.judge.staircase import Staircase
from leakscope.judge.track import Numbers
from leakscope.model import Rate

COVERED = 0.95
"""Nominal; see the coverage column of bench/judge_lab.py for what it comes to."""

TOO_SMALL = 1.5
"""Errors are multiplied by this: the model they rest on was chosen on the same data. With 1.25
the intervals of the lab's leaks held the truth in 75 to 93 %, by family and length (seed 7)."""

MOST_MEMORY = 0.95
NORMAL = 3.0
"""Half-width in errors that come from single points; wide for the same reason."""

INEXACT_CURVE = 0.01
"""Share of the rate that the choice among `TIME_CONSTANTS` leaves open. Without it and the late
slope 89 % of the intervals of exact counters under a warm-up held the truth at 120 points; the
eleven misses looked at were off by less than 1 % of the rate (lab, seed 11, 200 series)."""

SETTLED_SHARE = 0.6
"""What does not grow is measured over the newest part, where warm-up weighs least."""


def rate_of_growth(drift: Drift) -> Rate:
    """The rate of a drift that was found."""
    found = drift.contest
    if found is None:
        return Rate(0.0, 0.0, 0.0)
    half = _quantile(found.freedom, found.drift.memory) * found.slope_error
    half = max(half, _half_of_points(drift.ground, drift.levels, found))
    if found.drift.name in CURVED:
        # A curve of another bend would leave another line over, however little noise there is.
        half = max(half, INEXACT_CURVE * found.slope + abs(found.slope - drift.late_slope))
    if drift.staircase is not None:
        # The run may have begun and ended anywhere on a step.
        half = max(half, drift.staircase.size / max(drift.levels.span, 1e-300))
    return _rate(found.slope, half)


def rate_of_rest(levels: Levels, memory: float) -> Rate:
    """The rate over the newest part of levels that are not called growing."""
    if len(levels.x) < 3:
        return Rate(0.0, 0.0, 0.0)
    cut = int(np.searchsorted(levels.x, levels.x[-1] - SETTLED_SHARE * levels.span))
    newest = levels.since(max(0, min(cut, len(levels.x) - 6)))
    slope, error = slope_of(newest, memory)
    freedom = max(1.0, len(newest.x) - 2.0 - len(newest.stretches))
    return _rate(slope, _quantile(freedom, memory) * error)


def rate_of_troughs(x: Numbers, y: Numbers) -> Rate:
    """The rate of what a saw-tooth falls back to; it may be off by all that its troughs differ."""
    span = float(x[-1] - x[0]) if len(x) > 1 else 0.0
    if span <= 0:
        return Rate(0.0, 0.0, 0.0)
    return _rate(float(y[-1] - y[0]) / span, float(np.ptp(y)) / span)


def rate_of_stairs(stairs: Staircase) -> Rate:
    """If they go on: by the shortest and the longest distance between two of them."""
    gaps = np.diff(stairs.at)
    return Rate(
        stairs.size * len(gaps) / float(gaps.sum()),
        stairs.size / float(gaps.max()),
        stairs.size / float(gaps.min()),
    )


def _half_of_points(ground: Ground, levels: Levels, found: Contest) -> float:
    """Half-width from the single points, whose memory is better known than that of blocks.

    Intervals from levels alone held the truth in 59, 63 and 76 % of lines of 60, 120 and 300
    points with AR(0.9) noise (lab, seed 7).
    """
    first = int(np.searchsorted(ground.x, levels.x[0]))
    x, y = ground.x[first:], ground.y[first:]
    n = len(y)
    if n < 8:
        return 0.0
    rest = y - np.interp(x, levels.x, found.fitted)
    rest = rest - np.median(rest)
    bound = 6 * float(np.median(np.abs(rest)))
    rest = np.clip(rest, -bound, bound) if bound > 0 else rest
    power = float(rest @ rest)
    if power <= 0:
        return 0.0
    seen = float(rest[1:] @ rest[:-1]) / power
    # A fitted line takes (2 + 4 memory) / n of the memory with it (Kendall 1954, Marriott and
    # Pope 1954, for a trend); this gives it back.
    memory = min(MOST_MEMORY, max(0.0, (seen + 2 / n) / max(1 - 4 / n, 0.5)))
    longer = (1 + memory) / (1 - memory)
    independent = max(n / longer, 2.0)
    noise = np.sqrt(power / n * (1 + 2 / independent))
    error = float(noise) * found.leverage * np.sqrt(len(levels.x) * longer / n)
    return NORMAL * float(error)


def _quantile(freedom: float, memory: float) -> float:
    """Half-width in standard errors. Noise with memory leaves fewer independent levels."""
    independent = max(2.0, freedom * (1 - memory) / (1 + memory))
    return TOO_SMALL * far_out_in_t((1 - COVERED) / 2, independent)


def _rate(value: float, half: float) -> Rate:
    half = abs(half) if np.isfinite(half) else 0.0
    value = value if np.isfinite(value) else 0.0
    return Rate(value, value - half, value + half)
