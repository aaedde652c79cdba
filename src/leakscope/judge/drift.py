"""Track in, Drift out: is there a lasting rise, how fast, and what speaks against it?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import stats

from leakscope.judge.excursions import Ground, ground_of
from leakscope.judge.levels import Levels, levels_of
from leakscope.judge.rivals import Contest, contest, slope_of
from leakscope.judge.staircase import Staircase, staircase_of
from leakscope.judge.track import Numbers, Track

LEAST_LEAD = 6.0
LEAST_T = 8.0
LEAST_EFFECT = 15.0
LEAST_FLOORS_EFFECT = 8.0
RAREST_CHANCE = 3e-4
LEAST_STAIRCASE_EFFECT = 8.0
LATE_SHARE = 0.4
LATE_RATIO = 0.4
LOW_RATIO = 0.25


class Objection(StrEnum):
    """Why a rise is not called growth."""

    NONE = "none"
    TOO_FEW = "too few"
    RIVAL = "rival"
    WEAK = "weak"
    STOPPED = "stopped"
    GIVEN_BACK = "given back"


@dataclass(frozen=True)
class Drift:
    """The lasting rise of one track, as far as it can be told."""

    objection: Objection
    first: int
    """Index of the first judged point in the track."""
    ground: Ground
    levels: Levels
    contest: Contest | None
    staircase: Staircase | None = None
    late_slope: float = 0.0


def first_judged(track: Track) -> int:
    """Where warm-up is over at the latest: a third of the run, or three values of a short one."""
    n = len(track.y)
    if track.is_floors and n < 15:
        return n // 5
    return n // 3 if n >= 24 else max(0, min(3, n - 8))


def drift_of(track: Track) -> Drift:
    """The verdict's core: contest, second look, and whether it is given back."""
    ground = ground_of(track)
    first = first_judged(track)
    levels = levels_of(ground, track.grain)
    least = 5 if track.is_floors else 8
    if len(levels.x) < least:
        return Drift(Objection.TOO_FEW, first, ground, levels, None)
    start = min(int(np.searchsorted(levels.x, track.x[first])), len(levels.x) - least)
    judged = levels.since(start)
    found = contest(judged)
    objection, late = _objection(found, judged, track, ground, 3, LEAST_FLOORS_EFFECT if track.is_floors else LEAST_EFFECT)
    if objection is Objection.NONE:
        return Drift(objection, first, ground, judged, found, None, late)
    stairs = staircase_of(ground)
    if stairs is not None:
        whole = Levels(judged.x, judged.y, (), judged.grain)
        risen = contest(whole)
        second, late = _objection(risen, whole, track, ground, 0, LEAST_STAIRCASE_EFFECT)
        if second is Objection.NONE:
            return Drift(second, first, ground, whole, risen, stairs, late)
    return Drift(objection, first, ground, judged, found, None, late)


def _objection(
    found: Contest,
    judged: Levels,
    track: Track,
    ground: Ground,
    but_largest: int,
    least_effect: float,
) -> tuple[Objection, float]:
    late = _late_slope(judged, found.memory)
    if found.slope <= 0 or found.lead < LEAST_LEAD:
        return Objection.RIVAL, late
    least_t = max(LEAST_T, float(stats.t.isf(RAREST_CHANCE, found.freedom)))
    if found.slope < least_t * found.slope_error:
        return Objection.WEAK, late
    if found.slope * judged.span < least_effect * found.noise:
        return Objection.WEAK, late
    if late < LATE_RATIO * found.slope:
        return Objection.STOPPED, late
    if not track.is_floors and _low_rise(ground, judged.x[0], but_largest) < LOW_RATIO * found.slope * judged.span:
        return Objection.GIVEN_BACK, late
    return Objection.NONE, late


def _late_slope(levels: Levels, memory: float) -> float:
    """Slope over the newest part alone: the second look that has to agree."""
    cut = int(np.searchsorted(levels.x, levels.x[-1] - LATE_SHARE * levels.span))
    late = levels.since(min(cut, len(levels.x) - 4))
    return slope_of(late, memory)


def _low_rise(ground: Ground, since: float, but_largest: int) -> float:
    """How much of the rise is never given back, without its few largest single rises.

    Each value counts as the lowest that follows it. Values of the last quarter have too
    little after them to be called kept, so only the ones before it are added up.
    """
    y = ground.without_pairs()[np.searchsorted(ground.x, since) :]
    kept = np.minimum.accumulate(y[::-1])[::-1]
    rises = np.sort(np.diff(kept[: -(len(y) // 4)]))
    return float(rises[: len(rises) - but_largest].sum())
