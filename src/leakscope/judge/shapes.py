"""Drift in, Form out: what a series that is not growing looks like."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope.judge.drift import Drift, Objection
from leakscope.judge.rivals import contest
from leakscope.judge.track import Numbers
from leakscope.model import Shape

VISIBLE = 4.0
"""A form is named if it is larger than this many noise standard deviations."""

FEWEST_REPEATS = 3
REGULAR = 0.35
"""Something is periodic if it came back three times and the distances vary by less."""

MANY_RISES = 3
"""One or two rises that stay are steps, three or more a high-water mark."""


@dataclass(frozen=True)
class Form:
    """A shape with its size and places."""

    shape: Shape
    size: float = 0.0
    at: tuple[float, ...] = ()
    period: float | None = None


def form_of(drift: Drift) -> Form:
    """The largest thing that happened in this series."""
    noise = drift.contest.noise if drift.contest else 0.0
    forms = [_saw_tooth(drift), _excursions(drift), _rises(drift), _warm_up(drift)]
    seen = [form for form in forms if form is not None]
    seen = [form for form in seen if form.size > max(VISIBLE * noise, 2 * drift.track.grain)]
    return max(seen, key=lambda form: form.size, default=Form(Shape.FLAT))


def troughs_of(drift: Drift) -> tuple[Numbers, Numbers]:
    """Positions and values right after each drop that undid no single jump."""
    ground = drift.ground
    at = [ground.jump_at[j] for j in ground.lone_drops()]
    return ground.x[at], ground.y[at]


def _saw_tooth(drift: Drift) -> Form | None:
    ground = drift.ground
    drops = ground.lone_drops()
    if len(drops) < 2 and drift.objection is not Objection.GIVEN_BACK:
        return None
    if not drops:
        return None
    at = [float(ground.x[ground.jump_at[j]]) for j in drops]
    period = float(np.median(np.diff(at))) if len(at) > 1 else None
    size = float(np.median([-ground.jump_size[j] for j in drops]))
    return Form(Shape.SAW_TOOTH, size, tuple(at), period)


def _excursions(drift: Drift) -> Form | None:
    """What came and went, if it came regularly."""
    passing = drift.ground.passing
    if len(passing) == 0:
        return None
    starts = passing[np.diff(passing, prepend=-2) > 1]
    if len(starts) < FEWEST_REPEATS:
        return None
    at = drift.track.x[starts]
    gaps = np.diff(at)
    usual = float(np.median(gaps))
    if float(np.median(np.abs(gaps - usual))) > REGULAR * usual:
        return None
    return Form(Shape.PERIODIC, drift.ground.passing_size, tuple(at.tolist()), usual)


def _rises(drift: Drift) -> Form | None:
    """Rises that stayed."""
    ground = drift.ground
    rises = ground.lone_rises()
    if not rises:
        return None
    at = tuple(float(ground.x[ground.jump_at[j]]) for j in rises)
    shape = Shape.HIGH_WATER if len(rises) >= MANY_RISES else Shape.STEP
    return Form(shape, float(sum(ground.jump_size[j] for j in rises)), at)


def _warm_up(drift: Drift) -> Form | None:
    """A rise that came to an end: along a curve it was warm-up, along a line a filling."""
    every = drift.every_level
    if len(every.x) < 12:
        return None
    harmless = contest(every).harmless
    if harmless.name not in ("saturating", "capped"):
        return None
    shape = Shape.FILLING if harmless.name == "capped" else Shape.WARM_UP
    settled = float(every.x[0]) + every.span * min(
        1.0, harmless.time * (1.0 if harmless.name == "capped" else 3.0)
    )
    return Form(shape, harmless.height, (settled,))
