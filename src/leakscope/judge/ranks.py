"""Rates of the ranks of one job in, those that stand out and a band over all of them out."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import NamedTuple

import numpy as np

from leakscope.model import BandPoint, Outcome, Rate, Series

BUCKETS = 20
LOW, HIGH = 0.1, 0.9
_GROWS = (Outcome.GROWING, Outcome.LEAK)

_BEYOND = 6 * 1.4826
"""A rank stands out from so many standard deviations of the others on: of 1,024 ranks that differ
by chance, one in a million jobs would have such a one."""
_ABOVE = 0.25
"""And by so much of what is usual: a rank with a few more samples than the others is no outlier."""
_LEAST = 1024.0
"""Bytes a step; see _ALWAYS_MATTERS in judge/account.py."""


class Pace(NamedTuple):
    """How fast one rank grows."""

    outcome: Outcome
    rate: Rate


def deviating(paces: Mapping[int, Pace]) -> tuple[int, ...]:
    """The ranks that grow clearly faster than the rest of them, the fastest first."""
    found = []
    for rank, pace in paces.items():
        others = [other.rate.value for number, other in paces.items() if number != rank]
        if not others or pace.outcome not in _GROWS:
            continue
        usual = median(others)
        spread = median(abs(value - usual) for value in others)
        margin = max(_BEYOND * spread, _ABOVE * abs(usual), _LEAST)
        if pace.rate.low > usual and pace.rate.value > usual + margin:
            found.append(rank)
    return tuple(sorted(found, key=lambda rank: -paces[rank].rate.value))


def band_over(series: Mapping[int, Series]) -> tuple[BandPoint, ...]:
    """Quantiles over ranks, stretch by stretch of the steps that all of them made."""
    if len(series) < 2:
        return ()
    first = max(one.steps[0] for one in series.values())
    last = min(one.steps[-1] for one in series.values())
    if last <= first:
        return ()
    edges = np.linspace(first, last, BUCKETS + 1)
    ranks = np.array(sorted(series))
    levels = np.array([_levels(series[rank], edges) for rank in ranks])
    return band_of(ranks, levels, edges)


def band_of(
    ranks: np.ndarray[tuple[int], np.dtype[np.int64]],
    levels: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    edges: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> tuple[BandPoint, ...]:
    """From mean levels, a row for each rank and a column for each stretch."""
    points = []
    for bucket in range(levels.shape[1]):
        here = levels[:, bucket]
        if np.isnan(here).any():
            continue
        low, middle, high = np.quantile(here, (LOW, 0.5, HIGH))
        top = int(np.argmax(here))
        step = float(round((edges[bucket] + edges[bucket + 1]) / 2))
        low, middle, high, largest = (float(value) for value in (low, middle, high, here[top]))
        points.append(BandPoint(step, low, middle, high, largest, int(ranks[top])))
    return tuple(points)


def _levels(
    series: Series, edges: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Mean of the values in each stretch; between two values where it has none."""
    steps, values = np.asarray(series.steps), np.asarray(series.values)
    bucket = np.clip(np.searchsorted(edges, steps, side="right") - 1, -1, len(edges) - 2)
    bucket[(steps < edges[0]) | (steps > edges[-1])] = -1
    inside = bucket >= 0
    counts = np.bincount(bucket[inside], minlength=len(edges) - 1)
    sums = np.bincount(bucket[inside], weights=values[inside], minlength=len(edges) - 1)
    middles = (edges[:-1] + edges[1:]) / 2
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.interp(middles, steps, values))
