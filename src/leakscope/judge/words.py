"""Numbers in, the sentence of a verdict out."""

from __future__ import annotations

from leakscope import text
from leakscope.judge.drift import Drift
from leakscope.judge.shapes import Form
from leakscope.judge.staircase import Staircase
from leakscope.model import Rate, Shape

ENOUGH_STEPS = 60
"""At 60 points the lab finds 98 % of plain lines of 30 sigma, and fewer where more goes on."""


def growing(unit: str, rate: Rate, drift: Drift, shape: Shape) -> str:
    """Why this is growth."""
    levels = drift.levels
    risen = text.quantity(rate.value * levels.span, unit)
    where = f"from step {_step(levels.x[0])} to {_step(drift.track.x[-1])}"
    how = "in steps that keep coming" if shape is Shape.STAIRCASE else "and does not slow down"
    is_left = drift.track.is_floors or drift.track.is_cleared
    what = "What is left after full collections" if is_left else "It"
    between = text.rate_between(rate.low, rate.high, unit)
    return (
        f"{what} grows by {text.rate(rate.value, unit)} ({between}) {where} {how}: {risen} in all."
    )


def too_little(unit: str, rate: Rate, smallest_that_matters: float) -> str:
    """Growth that nobody needs to act on."""
    return (
        f"It grows by {text.rate(rate.value, unit)} and surely by less than "
        f"{text.rate(smallest_that_matters, unit)}, below which growth does not matter here."
    )


def steady(unit: str, rate: Rate, form: Form, drift: Drift) -> str:
    """Why this is not growth."""
    size = text.quantity(form.size, unit)
    rest = f"the rest moves by {text.rate_between(rate.low, rate.high, unit)}"
    at = ", ".join(_step(x) for x in form.at[:3])
    if form.shape is Shape.STEP:
        times = "once" if len(form.at) == 1 else "twice"
        return f"It rose {times} by {size} in all, at step {at}, and stayed; {rest}."
    if form.shape is Shape.HIGH_WATER:
        return (
            f"It rose {len(form.at)} times by {size} in all, ever more rarely, as the largest "
            f"request so far does; {rest}."
        )
    if form.shape is Shape.PERIODIC:
        return f"Every {_step(form.period or 0)} steps it rises by {size} and comes back; {rest}."
    if form.shape is Shape.SAW_TOOTH:
        return f"It rises by {size} and is given back each time; {rest}."
    if form.shape is Shape.WARM_UP:
        return f"It rose by {size} until about step {at} and settled; {rest}."
    if form.shape is Shape.FILLING:
        return f"It filled up by {size} until step {at} and stopped; {rest}."
    where = f"from step {_step(drift.levels.x[0])} to {_step(drift.track.x[-1])}"
    return f"It is flat {where}: {text.rate_between(rate.low, rate.high, unit)}."


def like_rises(unit: str, stairs: Staircase) -> str:
    """As high as one another, at like distances, and too few."""
    size = text.quantity(stairs.size, unit)
    apart = (stairs.at[-1] - stairs.at[0]) / (len(stairs.at) - 1)
    return (
        f"It rose {len(stairs.at)} times by {size}, about {_step(apart)} steps apart, and the next "
        "may be due: too few to tell growth from something that is complete; run twice as long."
    )


def hidden(unit: str, rate: Rate, span: float) -> str:
    """So few values, or such scatter, that nothing is ruled out."""
    most = text.quantity(rate.high * span, unit)
    return (
        f"It moves by {text.rate_between(rate.low, rate.high, unit)}: growth by {most}, more than "
        "there is, would not have shown; run longer."
    )


def needs_floors(unit: str, form: Form, troughs: int) -> str:
    """A saw-tooth whose floor is not known well enough."""
    size = text.quantity(form.size, unit)
    times = "once" if troughs == 1 else f"each time, {troughs} times"
    return (
        f"It rises and is given back ({size} {times}): what stays can be told from at least 5 "
        "values right after full collections; run longer."
    )


def slowing(unit: str, rate: Rate) -> str:
    """Rising, but less and less."""
    return (
        f"It still rises ({text.rate_between(rate.low, rate.high, unit)}) but is slowing: "
        "a warm-up or a filling cache would do the same; run twice as long."
    )


def weak(unit: str, rate: Rate, noise: float) -> str:
    """A rise too small for its noise."""
    return (
        f"It may grow ({text.rate_between(rate.low, rate.high, unit)}), but the values scatter "
        f"by {text.quantity(noise, unit)}; run twice as long."
    )


def only_above(unit: str, rate: Rate) -> str:
    """Most values lie on a rising line, the rest too few or too low to say what stays."""
    return (
        f"Most of the time it rises ({text.rate_between(rate.low, rate.high, unit)}), but it falls "
        "far below that in between, too rarely to tell whether what stays rises too; run twice as "
        "long."
    )


def undecided(unit: str, rate: Rate) -> str:
    """A rise that something else explains nearly as well."""
    return (
        f"It rises ({text.rate_between(rate.low, rate.high, unit)}), but a few single steps or "
        "a warm-up explain that nearly as well; run twice as long."
    )


def too_few(levels: int, drift: Drift) -> str:
    """Too little is left to judge."""
    return (
        f"Only {levels} values stand for what stays between the ups and downs of "
        f"{len(drift.track.y)}; run at least {ENOUGH_STEPS} steps."
    )


def too_short(values: int) -> str:
    """A series that has hardly begun."""
    plural = "value" if values == 1 else "values"
    return f"Only {values} {plural}; run at least {ENOUGH_STEPS} steps."


def _step(x: float) -> str:
    return f"{x:,.0f}" if float(x).is_integer() or abs(x) >= 100 else f"{x:,.1f}"
