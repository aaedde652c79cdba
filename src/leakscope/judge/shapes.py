"""Drift in, Form out: what a series that is not growing looks like."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope.judge.drift import Drift
from leakscope.judge.excursions import STAGES
from leakscope.judge.jumps import teeth_of
from leakscope.judge.rivals import contest
from leakscope.judge.track import Numbers
from leakscope.model import Shape

VISIBLE = 4.0
"""A form is named if it is larger than this many noise standard deviations."""

FEWEST_REPEATS = 3
REGULAR = 0.35
"""Something is periodic if it came back three times and the distances vary by less."""

EARLY = 0.2
"""Several rises that were all over by then are a warm-up."""

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
    teeth = _saw_tooth(drift)
    forms = [_excursions(drift), _rises(drift), teeth or _warm_up(drift)]
    seen = [form for form in forms if form is not None]
    seen = [form for form in seen if form.size > max(VISIBLE * noise, 2 * drift.track.grain)]
    return max(seen, key=lambda form: form.size, default=Form(Shape.FLAT))


def troughs_of(form: Form, drift: Drift) -> Numbers:
    """The lowest values of each fall of a saw-tooth, which may take a few points."""
    y = drift.track.y
    at = np.searchsorted(drift.track.x, form.at)
    return np.asarray([y[i : i + STAGES].min() for i in at])


def peaks_of(form: Form, drift: Drift) -> Numbers:
    """The highest value before each fall of a saw-tooth and after the last one."""
    at = np.searchsorted(drift.track.x, form.at)
    return np.asarray([part.max() for part in np.split(drift.track.y, at) if len(part)])


def _saw_tooth(drift: Drift) -> Form | None:
    """Rises that were undone by drops."""
    teeth = teeth_of(drift.track.x, drift.track.y, drift.ground.jump, -np.inf)
    largest = max((tooth.undone for tooth in teeth), default=0.0)
    teeth = [tooth for tooth in teeth if tooth.undone > largest / 4]
    if len(teeth) < 2:
        return None
    at = [tooth.at for tooth in teeth]
    size = float(np.median([tooth.undone for tooth in teeth]))
    return Form(Shape.SAW_TOOTH, size, tuple(at), float(np.median(np.diff(at))))


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
    """Rises that stayed. Small ones beside a large one are not told of."""
    ground = drift.ground
    increments = np.diff(drift.track.y)
    usual = float(np.ptp(np.quantile(increments, [0.05, 0.95]))) / 2 if len(increments) else 0.0
    sizes = {j: ground.jump_size[j] for j in ground.lone_rises()}
    least = max(usual, max(sizes.values(), default=0.0) / 10)
    rises = [j for j, size in sizes.items() if size >= least]
    if not rises:
        return None
    at = tuple(float(ground.x[ground.jump_at[j]]) for j in rises)
    total = float(sum(sizes[j] for j in rises))
    early = drift.track.x[0] + EARLY * (drift.track.x[-1] - drift.track.x[0])
    if len(rises) > 1 and at[-1] <= early:
        return Form(Shape.WARM_UP, total, at[-1:])
    return Form(Shape.HIGH_WATER if len(rises) >= MANY_RISES else Shape.STEP, total, at)


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
