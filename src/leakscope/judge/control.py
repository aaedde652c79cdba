"""Levels in, the smallest leak that would have been seen in them out.

A verdict that finds nothing means little unless it would have found something: a ramp is
added to the recorded levels, and the same contest is held again.
"""

from __future__ import annotations

from leakscope.judge.drift import LEAST_EFFECT, LEAST_EFFECT_OF_FEW, Drift, late_slope, object_to
from leakscope.judge.levels import Levels
from leakscope.judge.rivals import contest

MOST_DOUBLINGS = 6
HALVINGS = 2
"""Each is one contest of about a millisecond; two halvings leave a factor of 1.4 at most."""


def smallest_visible(drift: Drift) -> float:
    """Bytes per step of the smallest steady leak that would have been called growth."""
    found = drift.contest
    levels = drift.levels
    if found is None or levels.span <= 0:
        return _range_per_step(levels)
    is_few = drift.track.is_floors or drift.staircase is not None
    effect = LEAST_EFFECT_OF_FEW if is_few else LEAST_EFFECT
    known = max(found.slope, 0.0) if drift.objection == "none" else 0.0
    least = max(found.noise, levels.grain, 1e-300)
    guess = effect * least / levels.span
    low = guess / 4
    for _ in range(MOST_DOUBLINGS):
        if _is_seen(levels, guess - known, effect):
            break
        low, guess = guess, 2 * guess
    for _ in range(HALVINGS):
        middle = (low * guess) ** 0.5
        if _is_seen(levels, middle - known, effect):
            guess = middle
        else:
            low = middle
    return guess


def _is_seen(levels: Levels, bytes_per_step: float, effect: float) -> bool:
    y = levels.y + bytes_per_step * (levels.x - levels.x[0])
    ramped = Levels(levels.x, y, levels.stretches, levels.grain)
    found = contest(ramped)
    return object_to(found, ramped, late_slope(ramped, found), effect) is None


def _range_per_step(levels: Levels) -> float:
    """Where no contest could be held: nothing smaller than the whole range is excluded."""
    if len(levels.y) == 0 or levels.span <= 0:
        return 0.0
    return float(levels.y.max() - levels.y.min()) / levels.span
