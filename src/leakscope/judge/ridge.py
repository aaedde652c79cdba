"""Track in, Ridge out: the line that most values lie on, and whether the others rise with it.

Rows by the clock fall anywhere into a step. Some are read while it holds its temporary arrays and
some while it does not: two levels megabytes apart, in no order, with a leak of kilobytes in both.
Medians and excursions see noise there. A line that more than half of the values lie on, to a small
share of what lies between the two levels, is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.judge.track import Flags, Numbers, Track

WIDTH = 0.03
"""Half the width of a ridge, in ranges of all values. Of 30 values at random a line this wide has
two; the best of all lines through two of them has seven or eight."""

LEAST_ON_IT = 0.5
LEAST_BESIDE = 0.1
"""Shares of the values. With fewer beside it there is nothing that others could not see through."""

CLEAR = 3.0
LEAST_CLEAR = 0.75
"""So many half widths away is beside the ridge and not its own scatter, for this share of what is
not on it: without a gap it is no ridge but the middle of noise."""

LEAST_IN_A_THIRD = 0.35
FEWEST_TURNS = 2
"""Share of the values of the second third of the run and of the last that lie on it, and how often
it must be left: a cache that fills for two thirds of a run has a ridge too, and leaves it once."""

FEWEST_VALUES = 16
MOST_ENDS = 40
"""Lines are tried through this many values of the first two fifths and of the last two."""
END_SHARE = 0.4
MOST_COUNTED = 120
"""And counted over so many values: over 600 it took four times as long, more than all else."""

FEW_BELOW = 0.1
"""Of what lies beside it."""
FEWEST_LOWS = 2
LOW_RATIO = 0.3
"""The lowest values must rise too, from one half to the other, at this share of the ridge's pace,
and each half needs two values below the ridge to tell it by. Else only what a step takes for a
while has become more, which is no leak."""


@dataclass(frozen=True)
class Ridge:
    """The values on the line, in their order."""

    track: Track
    slope: float
    has_rising_lows: bool | None
    """Whether the values below it rise as well; None if they are too few to tell."""


def ridge_of(track: Track) -> Ridge | None:
    """The line that most values lie on, where the others lie clearly beside it."""
    x, y = track.x, track.y
    if track.is_floors or track.is_cleared or len(y) < FEWEST_VALUES:
        return None
    half = max(WIDTH * float(np.ptp(y)), 2 * track.grain)
    slope, base = _fullest_line(x, y, half)
    on_it = np.abs(y - base - slope * x) <= half
    if on_it.sum() < LEAST_ON_IT * len(y):
        return None
    # Once more from the values themselves: two of them had set the line.
    slope = _middle_slope(x[on_it], y[on_it])
    rest = y - slope * x
    rest -= np.median(rest[on_it])
    on_it = np.abs(rest) <= half
    beside = ~on_it
    if on_it.sum() < LEAST_ON_IT * len(y) or beside.sum() < LEAST_BESIDE * len(y):
        return None
    if float(np.mean(np.abs(rest[beside]) > CLEAR * half)) < LEAST_CLEAR:
        return None
    if min(float(np.mean(third)) for third in np.array_split(on_it, 3)[1:]) < LEAST_IN_A_THIRD:
        return None
    if int((on_it[:-1] & beside[1:]).sum()) < FEWEST_TURNS:
        return None
    kept = Track(x[on_it], y[on_it], track.grain, track.is_exact)
    below = rest < -half
    if below.sum() <= FEW_BELOW * beside.sum():
        return Ridge(kept, slope, has_rising_lows=slope > 0)  # it is itself what is lowest
    return Ridge(kept, slope, lows_rise(x, y, below, slope))


def _fullest_line(x: Numbers, y: Numbers, half: float) -> tuple[float, float]:
    """Slope and base of the line, through one early and one late value, with most values on it."""
    end = max(2, int(len(x) * END_SHARE))
    early, late = _some(0, end), _some(len(x) - end, len(x))
    slopes = (y[late][None, :] - y[early][:, None]) / (x[late][None, :] - x[early][:, None])
    bases = y[early][:, None] - slopes * x[early][:, None]
    slopes, bases = slopes.ravel(), bases.ravel()
    of = _some(0, len(x), MOST_COUNTED)
    counts = (np.abs(y[of] - bases[:, None] - slopes[:, None] * x[of]) <= half).sum(axis=1)
    best = int(counts.argmax())
    return float(slopes[best]), float(bases[best])


def _some(first: int, end: int, most: int = MOST_ENDS) -> NDArray[np.intp]:
    count = min(end - first, most)
    return np.linspace(first, end - 1, count).astype(np.intp)


def _middle_slope(x: Numbers, y: Numbers) -> float:
    """From the median of the first third to that of the last."""
    third = max(len(x) // 3, 1)
    early, late = slice(0, third), slice(len(x) - third, len(x))
    span = float(np.median(x[late]) - np.median(x[early]))
    return float(np.median(y[late]) - np.median(y[early])) / span if span > 0 else 0.0


def lows_rise(
    x: Numbers, y: Numbers, is_low: Flags, slope: float, fewest: int = FEWEST_LOWS
) -> bool | None:
    """Whether the lowest values rise from one half to the other; None where too few are low."""
    middle = float(x[0] + x[-1]) / 2
    halves = (is_low & (x < middle), is_low & (x >= middle))
    if min(int(half.sum()) for half in halves) < fewest:
        return None
    at = [int(np.flatnonzero(half)[y[half].argmin()]) for half in halves]
    return bool(y[at[1]] - y[at[0]] > LOW_RATIO * slope * (x[at[1]] - x[at[0]]))
