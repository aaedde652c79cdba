"""Ground in, Levels out: few points that stand for many, never across a jump."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope.judge.excursions import Ground
from leakscope.judge.track import Numbers

MOST_LEVELS = 40
"""Levels a contest is held over. More would cost time and add correlated points; fewer
would blur jumps (lab, seed 1: 30 loses 2 % of staircases, 60 gains nothing)."""


@dataclass(frozen=True)
class Levels:
    """Block medians of the kept points."""

    x: Numbers
    y: Numbers
    starts: tuple[int, ...]
    """Indices at which a new stretch begins because the level jumped there."""
    grain: float

    @property
    def span(self) -> float:
        """Steps from the first level to the last."""
        return float(self.x[-1] - self.x[0]) if len(self.x) > 1 else 0.0

    def since(self, first: int) -> Levels:
        """The levels from index `first` on."""
        starts = tuple(s - first for s in self.starts if s > first)
        return Levels(self.x[first:], self.y[first:], starts, self.grain)


def levels_of(ground: Ground, grain: float) -> Levels:
    """At most about `MOST_LEVELS` block medians, cut where the ground jumps."""
    n = len(ground.y)
    if n == 0:
        return Levels(ground.x, ground.y, (), grain)
    block = max(1, -(-n // MOST_LEVELS))
    edges = [0, *ground.jump_at, n]
    x: list[float] = []
    y: list[float] = []
    starts: list[int] = []
    for first, end in zip(edges, edges[1:], strict=False):
        if end <= first:
            continue
        if first and x:
            starts.append(len(x))
        # Whole blocks count from the end: the newest values are the ones in question.
        parts = max(1, (end - first) // block)
        cuts = end - block * np.arange(parts, -1, -1)
        cuts[0] = first
        for a, b in zip(cuts, cuts[1:], strict=False):
            x.append(float(ground.x[a:b].mean()))
            y.append(float(np.median(ground.y[a:b])))
    return Levels(np.asarray(x), np.asarray(y), tuple(starts), grain)
