"""Series in, Verdict out."""

from __future__ import annotations

import math

import numpy as np
from msgspec.structs import replace

from leakscope.judge import words
from leakscope.judge.control import smallest_visible
from leakscope.judge.drift import FEWEST_LEVELS, Drift, Objection, drift_of, floors_agree
from leakscope.judge.interval import (
    rate_of_growth,
    rate_of_rest,
    rate_of_stairs,
    rate_of_troughs,
)
from leakscope.judge.ridge import lows_rise, ridge_of
from leakscope.judge.shapes import Form, form_of, peaks_of, troughs_of
from leakscope.judge.staircase import like_rises
from leakscope.judge.track import Track, cleared_of, floors_of, track_of
from leakscope.model import Outcome, Rate, Series, Shape, Verdict

SETTLED_REST = 0.05
"""A curve that is still rising counts as settled if it has this share of its rise to go."""

BEYOND_MEMORY = 1e30
"""No counter of bytes or objects reaches this; such a value, like NaN, is no reading."""

LEVEL_TROUGHS = 0.25
"""Troughs are level if they rise by less than this share of a tooth over the run."""

FEWEST_TROUGHS = 3
LEVEL_PEAKS = 0.1
"""Two troughs are enough if the peaks before, between and after them are as high as one another,
up to this share of a tooth: growth would have raised the third peak."""


MOST_HIDDEN = 1.0
"""Of the level: what may have doubled without a sign of it is not called flat. A choice, and wide:
a plain program of two seconds that grew by a third had an interval of twice its memory."""


def judge(series: Series, *, smallest_that_matters: float = 0.0) -> Verdict:
    """The verdict on one series: growing, steady or unknown, with the reason.

    Args:
        series: One counter over the steps of a run.
        smallest_that_matters: Growth that is surely below this, per step, is steady.
    """
    usable = _usable(series)
    whole = track_of(usable)
    if len(whole.y) < FEWEST_LEVELS:
        return _too_short(usable, whole)
    drift = _drift(usable, whole)
    if drift.objection is Objection.NONE:
        verdict = _growing(usable, drift, smallest_that_matters)
        return _only_above(verdict) if _left_out_lows_rise(drift) is False else verdict
    ridge = ridge_of(whole)
    if ridge is not None and ridge.slope > 0:
        along = drift_of(ridge.track)
        if along.objection is Objection.NONE:
            verdict = _growing(usable, along, smallest_that_matters)
            return verdict if ridge.has_rising_lows else _only_above(verdict)
    return _not_growing(usable, drift)


def _drift(series: Series, whole: Track) -> Drift:
    """The drift of what stays: of the floors, of all values less their garbage, or of all."""
    floors, cleared = floors_of(series), cleared_of(series)
    drift = drift_of(floors or whole)
    if cleared is not None and not (floors and drift.objection is Objection.NONE):
        between = drift_of(cleared)
        if between.objection is Objection.NONE and floors_agree(between, series):
            return between
    return drift


def _growing(series: Series, drift: Drift, smallest_that_matters: float) -> Verdict:
    rate = rate_of_growth(drift)
    form = Form(Shape.LINEAR)
    if drift.staircase is not None:
        form = Form(Shape.STAIRCASE, drift.staircase.size, drift.staircase.at)
    outcome, because = Outcome.GROWING, words.growing(series.unit, rate, drift, form.shape)
    if rate.high < smallest_that_matters:
        outcome = Outcome.STEADY
        because = words.too_little(series.unit, rate, smallest_that_matters)
    elif rate.low <= 0 and not (series.is_exact and rate.value >= smallest_that_matters):
        # Pages that came in the last moments of a short run. Of an exact counter the order alone
        # is enough, where growth becomes ever faster and no line fits; but not for so little that
        # only the upper end of the interval matters: 226 KiB in 600 steps on a GPU's host, where
        # kernels are loaded with every new length, were called a leak.
        noise = drift.contest.noise if drift.contest else 0.0
        outcome, because = Outcome.UNKNOWN, words.weak(series.unit, rate, noise)
    return _say(series, drift, outcome, because, rate, form)


def _left_out_lows_rise(drift: Drift) -> bool | None:
    """Whether what lies below the level that was judged rises with it; None if too little does."""
    track, levels, found = drift.track, drift.levels, drift.contest
    if track.is_floors or track.is_cleared or found is None:
        return None
    since = track.x >= levels.x[0]
    x, y = track.x[since], track.y[since]
    below = y < np.interp(x, levels.x, levels.y) - max(drift.ground.jump, 4 * found.noise)
    return lows_rise(x, y, below, found.slope, fewest=1)  # one is enough for a doubt


def _only_above(verdict: Verdict) -> Verdict:
    """Most values rise, and nothing shows that the others do: a step may only take more."""
    if verdict.outcome is Outcome.STEADY:
        return verdict
    because = words.only_above(verdict.unit, verdict.bytes_per_step)
    return replace(verdict, outcome=Outcome.UNKNOWN, because=because)


def _not_growing(series: Series, drift: Drift) -> Verdict:
    memory = drift.contest.drift.memory if drift.contest else 0.0
    rate = rate_of_rest(drift.levels, memory)
    form = form_of(drift)
    if drift.track.is_floors:
        form = _teeth(series)
    elif form.shape is Shape.SAW_TOOTH:
        rate = rate_of_troughs(np.asarray(form.at), troughs_of(form, drift))
    doubt = _doubt(series, drift, rate, form)
    stairs = like_rises(drift.ground) if series.is_exact else None
    if doubt is None and form.shape is Shape.HIGH_WATER and stairs is not None:
        doubt, rate = words.like_rises(series.unit, stairs), rate_of_stairs(stairs)
    if doubt is None:
        return _say(
            series, drift, Outcome.STEADY, words.steady(series.unit, rate, form, drift), rate, form
        )
    if form.shape is Shape.FLAT:
        form = Form(Shape.UNCLEAR)
    return _say(series, drift, Outcome.UNKNOWN, doubt, rate, form)


def _doubt(series: Series, drift: Drift, rate: Rate, form: Form) -> str | None:
    """What would have to be known before this can be called steady, or None."""
    found = drift.contest
    if form.shape is Shape.SAW_TOOTH and not drift.track.is_floors:
        low, high = troughs_of(form, drift), peaks_of(form, drift)
        tooth = float(np.median(high[:-1] - low))
        is_level = float(low[-1] - low[0]) <= LEVEL_TROUGHS * tooth
        if len(low) < FEWEST_TROUGHS:
            is_level &= len(high) > len(low) > 1 and float(np.ptp(high)) <= LEVEL_PEAKS * tooth
        return None if is_level else words.needs_floors(series.unit, form, len(low))
    if drift.objection is Objection.TOO_FEW or found is None:
        return words.too_few(len(drift.levels.x), drift)
    if drift.objection is Objection.SLOWING:
        return words.slowing(series.unit, rate)
    if drift.objection is Objection.WEAK and rate.low > 0:
        return words.weak(series.unit, rate, found.noise)
    if drift.objection is Objection.STOPPED and rate.low > 0:
        return words.slowing(series.unit, rate)
    if drift.objection is Objection.GIVEN_BACK:
        return words.needs_floors(series.unit, form, len(form.at))
    if found.harmless.name == "saturating" and rate.low > 0:
        remaining = math.exp(-1 / found.harmless.time) * found.harmless.height
        risen = float(drift.every_level.y[-1] - drift.every_level.y[0])
        if remaining > SETTLED_REST * max(risen, 1e-300):
            return words.slowing(series.unit, rate)
    if rate.low > 0 and (found.lead > 0 or form.shape is Shape.FLAT):
        return words.undecided(series.unit, rate)  # what surely rises is not flat
    span, level = float(drift.levels.span), float(np.median(drift.track.y))
    if form.shape is Shape.FLAT and rate.high * span > MOST_HIDDEN * level > 0:
        return words.hidden(series.unit, rate, span)
    return None


def _teeth(series: Series) -> Form:
    """The saw-tooth between floors: how much each full collection gave back."""
    y = series.values
    floors = [i for i in series.floors if 0 < i < len(y)]
    freed = float(np.median([y[i - 1] - y[i] for i in floors]))
    at = tuple(float(series.steps[i]) for i in floors)
    return Form(Shape.SAW_TOOTH, max(freed, 0.0), at, float(np.median(np.diff(at))))


def _say(
    series: Series, drift: Drift, outcome: Outcome, because: str, rate: Rate, form: Form
) -> Verdict:
    levels = drift.levels
    return Verdict(
        series=series.key,
        outcome=outcome,
        shape=form.shape,
        because=because,
        bytes_per_step=rate,
        smallest_visible_bytes_per_step=smallest_visible(drift),
        unit=series.unit,
        from_step=float(levels.x[0]) if len(levels.x) else 0.0,
        to_step=float(drift.track.x[-1]),
        steps_at=form.at,
        period_steps=form.period,
        grown_bytes=float(levels.y[-1] - levels.y[0]) if len(levels.y) else 0.0,
        size_bytes=form.size,
    )


def _too_short(series: Series, track: Track) -> Verdict:
    n = len(track.y)
    span = float(track.x[-1] - track.x[0]) if n > 1 else 0.0
    rise = float(track.y[-1] - track.y[0]) if n > 1 else 0.0
    reach = float(track.y.max() - track.y.min()) if n > 1 else 0.0
    value = rise / span if span > 0 else 0.0
    half = reach / span if span > 0 else 0.0
    return Verdict(
        series=series.key,
        outcome=Outcome.UNKNOWN,
        shape=Shape.UNCLEAR,
        because=words.too_short(n),
        bytes_per_step=Rate(value, value - half, value + half),
        smallest_visible_bytes_per_step=half,
        unit=series.unit,
        from_step=float(track.x[0]) if n else 0.0,
        to_step=float(track.x[-1]) if n else 0.0,
        grown_bytes=rise,
    )


def _usable(series: Series) -> Series:
    """The series without what cannot be a reading; almost always the series itself."""
    n = min(len(series.steps), len(series.values))
    x = np.asarray(series.steps[:n], dtype=float)
    y = np.asarray(series.values[:n], dtype=float)
    good = (np.abs(x) < BEYOND_MEMORY) & (np.abs(y) < BEYOND_MEMORY)
    good[1:] &= x[1:] > np.maximum.accumulate(np.where(good, x, -np.inf))[:-1]
    if good.all() and n == len(series.steps) == len(series.values):
        return series
    kept = np.flatnonzero(good)
    place = {int(old): new for new, old in enumerate(kept)}
    return Series(
        series.key,
        series.unit,
        tuple(x[kept].tolist()),
        tuple(y[kept].tolist()),
        tuple(place[i] for i in series.floors if i in place),
        series.is_exact,
        series.resolution,
    )
