"""When to judge again: at growing intervals, and never for more than a small share of a core."""

from __future__ import annotations

_PAUSE = 30
"""Judging again may begin when 30 times its last cost has passed: some 3 % of one core."""
_SHORTEST_S = 2.0
_SHARE_OF_AGE = 1 / 20
"""A verdict over ten minutes changes slowly: the older a run, the rarer the question."""
_LONGEST_S = 60.0


class Pace:
    """Decides by the age of the run and by what judging cost the last time."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def is_due(self, now_s: float) -> bool:
        return now_s >= self._next_s

    def judged(self, now_s: float, *, cost_s: float, age_s: float) -> None:
        by_age_s = min(max(_SHORTEST_S, age_s * _SHARE_OF_AGE), _LONGEST_S)
        self._next_s = now_s + max(by_age_s, cost_s * _PAUSE)
