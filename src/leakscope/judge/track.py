"""Series in, Track out: the same values as arrays, and not more of them than a verdict needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.model import Series

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]

MOST_POINTS = 600
"""More points than this are reduced first: a leak's growth over the run does not depend on how
often it was read, and the cost of a verdict should not either."""

LOW_SHARE = 0.1
"""Of a block, the value below which a tenth lies: what is there when nothing passing is,
and, unlike the minimum, not the reading of a single dip."""

WHOLE_FLOORS = 5
"""Fewer values at full collections than this do not make a line."""

UNLIKE_TEETH = 0.5
"""Garbage gathers steadily if what a collection frees is, up to this share of the usual, the age
of the garbage times one rate. Where it is not, only the floors themselves count."""

FREEING_SHARE = 0.75
"""This share of the collections must free something for the rate of garbage to mean anything."""


@dataclass(frozen=True)
class Track:
    """Positions and values of the points a verdict is made from."""

    x: Numbers
    y: Numbers
    grain: float
    """The smallest difference between two values that means anything."""
    is_exact: bool
    is_floors: bool = False
    """True where the points are the values right after full collections."""
    is_cleared: bool = False
    """True where the garbage since the last full collection is taken out of every value."""


def track_of(series: Series) -> Track:
    """All values of a series, reduced to low levels of blocks where there are too many."""
    x = np.asarray(series.steps, dtype=float)
    y = np.asarray(series.values, dtype=float)
    n = min(len(x), len(y))
    x, y = x[:n], y[:n]
    largest = float(np.max(np.abs(y), initial=0.0))
    # Below twelve digits a double holding the sum of level and growth is rounding.
    grain = max(float(series.resolution), largest * 1e-12)
    if n > MOST_POINTS:
        x, y = _low_levels(x, y)
    return Track(x, y, grain, series.is_exact)


def floors_of(series: Series) -> Track | None:
    """The values right after full collections, if there are enough and they are lower.

    Where a collection frees nothing, every value is as good as a floor and more of them
    say more; then this is None.
    """
    n = min(len(series.steps), len(series.values))
    floors = np.asarray([i for i in series.floors if 0 < i < n], dtype=int)
    if len(floors) < WHOLE_FLOORS:
        return None
    y = np.asarray(series.values, dtype=float)
    x = np.asarray(series.steps, dtype=float)
    freed = y[floors - 1] - y[floors]
    usual = np.median(np.abs(np.diff(y)))
    grain = max(float(series.resolution), float(np.max(np.abs(y))) * 1e-12)
    if np.median(freed) <= max(2 * usual, 2 * grain):
        return None
    x, y = x[floors], y[floors]
    if len(y) > MOST_POINTS:
        x, y = _low_levels(x, y)
    return Track(x, y, grain, series.is_exact, is_floors=True)


def cleared_of(series: Series) -> Track | None:
    """Every value less the garbage that had gathered since the last full collection.

    Floors are as they were. The values between them join in: an evaluation that covers a third
    of eight floors leaves too few, and not of a hundred values. A wrong rate of garbage leaves
    small teeth, but no trend, because it starts again from nothing at every floor.
    """
    n = min(len(series.steps), len(series.values))
    floors = np.asarray([i for i in series.floors if 0 < i < n], dtype=int)
    if len(floors) < WHOLE_FLOORS:
        return None
    x = np.asarray(series.steps[:n], dtype=float)
    y = np.asarray(series.values[:n], dtype=float)
    age = x[floors[1:] - 1] - x[floors[:-1]]
    freed = y[floors[1:] - 1] - y[floors[1:]]
    aged = age > 0
    age, freed = age[aged], freed[aged]
    if len(age) < WHOLE_FLOORS - 1 or float(np.mean(freed > 0)) < FREEING_SHARE:
        return None
    garbage = float(np.median(freed / age))
    if float(np.median(np.abs(freed - garbage * age))) > UNLIKE_TEETH * float(np.median(freed)):
        return None
    grain = max(float(series.resolution), float(np.max(np.abs(y))) * 1e-12)
    last = floors[np.searchsorted(floors, np.arange(floors[0], n), side="right") - 1]
    x, y = x[floors[0] :], y[floors[0] :] - garbage * (x[floors[0] :] - x[last])
    if len(y) > MOST_POINTS:
        x, y = _low_levels(x, y)
    return Track(x, y, grain, series.is_exact, is_cleared=True)


def _low_levels(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """One low level per block of neighbouring points; the oldest odd points are dropped."""
    block = -(-len(y) // MOST_POINTS)
    count = len(y) // block
    first = len(y) - count * block
    blocks = y[first:].reshape(count, block)
    rank = int(LOW_SHARE * block)
    return (
        x[first:].reshape(count, block).mean(axis=1),
        np.partition(blocks, rank, axis=1)[:, rank],
    )
