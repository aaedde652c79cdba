"""Trials in, conclusion out. Numbers only; nothing is run here.

A factor *removes* the growth if the program is steady under it and what could have been missed is a
fifth of the growth at most. A conclusion takes a second run of the factor that removes it, and a
second run of the program as it is that grows as the first did. Everything else is not enough.
"""

from __future__ import annotations

from collections.abc import Sequence

from leakscope import text
from leakscope.bisect.factors import Factor
from leakscope.bisect.state import State
from leakscope.bisect.trial import GROWS, Subject
from leakscope.comparison import difference
from leakscope.model import (
    BISECTION_SCHEMA,
    Bisection,
    Cause,
    Effect,
    FactorResult,
    Measured,
    Outcome,
    Rate,
    Trial,
)

_LEFT = 0.2
"""Of the growth: what may be left, or have been missed, in what is called removed."""
_GONE = 0.05
_REDUCED = 0.5
_SAME = (0.5, 1.6)
"""Of the growth. Rates of one real leak differed by up to 8 % between allocators (554 KB under
glibc, 523 under tcmalloc), those of memory that is held by 27 % and more."""
_ENOUGH_ALLOCATORS = 2
"""So many allocators and settings must leave the growth as it is before it is called kept."""

_GROUPS = {
    Cause.ALLOCATOR: "the allocator",
    Cause.CACHE: "a cache of a library",
    Cause.COLLECTOR: "the garbage collector",
    Cause.THREADS: "the number of threads",
    Cause.WORKERS: "how workers are started",
}


def best_factor(state: State) -> Factor | None:
    """The factor that removes most of the growth, to be tried once more; None if none does."""
    if state.subject is None:
        return None
    results = _results(state, state.subject)
    removing = [one for one in results if one.effect is Effect.REMOVED]
    reducing = [one for one in results if one.effect is Effect.REDUCED]
    chosen = min(removing or reducing, key=lambda one: _left(one, state.subject), default=None)
    if chosen is None:
        return None
    return next(factor for factor in state.factors if factor.id == chosen.factor)


def conclude(state: State) -> Bisection:
    """What the runs so far allow to be said."""
    subject = state.subject
    base = [trial.measured for trial in state.runs_of("")]
    results = _results(state, subject) if subject is not None else ()
    cause, says = _conclusion(state, subject, results)
    return Bisection(
        schema=BISECTION_SCHEMA,
        command=state.command,
        cause=cause,
        says=says,
        lead="live" if subject is not None and subject.is_live else "resident",
        baseline=tuple(base),
        factors=tuple(results),
        left_out=state.left_out,
        seconds=sum(trial.seconds for trial in state.trials),
        kept_by=state.kept_by,
    )


def _conclusion(
    state: State, subject: Subject | None, results: Sequence[FactorResult]
) -> tuple[Cause, str]:
    as_it_is = state.runs_of("")
    if not as_it_is:
        return Cause.UNKNOWN, "The program has not been run yet."
    if subject is None:
        if as_it_is[0].verdict is Outcome.STEADY:
            return Cause.STEADY, "The program does not grow here: there is nothing to explain."
        return Cause.UNKNOWN, (
            "There is no verdict on the program as it is, so nothing can be compared with it: "
            "let it run longer."
        )
    if (doubt := _doubt(as_it_is, subject)) is not None:
        return Cause.UNKNOWN, doubt
    was = _rate(as_it_is[0].measured, subject).value
    grows = _grows(subject, was)
    removing = [one for one in results if one.effect is Effect.REMOVED and one.runs > 1]
    reducing = [one for one in results if one.effect is Effect.REDUCED and one.runs > 1]
    groups = {one.group for one in results if one.effect is Effect.REMOVED}
    if removing or reducing:
        return _depends(removing or reducing, groups, results, subject, was)
    if not subject.is_live:
        return Cause.UNKNOWN, (
            f"{grows}, and no factor that was tried removes it: memory outside of malloc, such as "
            "mapped files, shared memory or a library's own pool, or something that allocators "
            "have in common."
        )
    return _kept(results, grows, state.kept_by)


def _grows(subject: Subject, was: float) -> str:
    what = (
        "Memory in use grows" if subject.is_live else "Memory in use is flat, resident memory grows"
    )
    return f"{what} by {text.rate(was)}"


def _depends(
    found: Sequence[FactorResult],
    groups: set[Cause],
    results: Sequence[FactorResult],
    subject: Subject,
    was: float,
) -> tuple[Cause, str]:
    grows = _grows(subject, was)
    best = min(found, key=lambda one: _left(one, subject))
    if subject.is_live and best.group is Cause.ALLOCATOR:
        return Cause.UNKNOWN, (
            f"{grows}, and less under {best.setting}; but allocators cannot free what is in use, "
            "so their counters differ rather than the memory. Not enough evidence."
        )
    left = max(_left(best, subject), 0.0)
    word = "is gone" if left <= _GONE * was else f"falls to {text.rate(left)}"
    says = f"{grows}, and {word} with {best.setting}, in two runs out of two."
    if best.group is Cause.ALLOCATOR:
        others = [one.setting for one in results if one.effect is Effect.REMOVED and one != best]
        if others:
            says += f" So it is with {', '.join(others)}."
        says += (
            " It is an effect of the allocator, which holds what the program has given back, and "
            "no leak of the program's."
        )
    elif best.group is Cause.CACHE:
        says += " It is what the library's cache keeps, and it ends when the cache is full."
    elif best.group is Cause.COLLECTOR:
        says += " It is garbage in cycles that waits for the collector."
    elif best.group is Cause.THREADS:
        says += " It depends on the number of threads."
    else:
        says += " It depends on how workers are started."
    if len(groups - {best.group}) and best.effect is Effect.REMOVED:
        more = " and ".join(sorted(_GROUPS[one] for one in groups - {best.group}))
        says += f" It went with {more} too: more than one thing has to come together for it."
    return best.group, says


def _kept(results: Sequence[FactorResult], grows: str, kept_by: str) -> tuple[Cause, str]:
    allocators = [one for one in results if one.group is Cause.ALLOCATOR]
    same = [one for one in allocators if one.effect in (Effect.SAME, Effect.LARGER)]
    unsure = [one for one in results if one.effect is Effect.REDUCED]
    unsure += [one for one in results if one.effect is Effect.REMOVED]
    if unsure:
        names = ", ".join(one.setting for one in unsure)
        return Cause.UNKNOWN, f"{grows}; less of it with {names}, but not in two runs out of two."
    if len(same) < _ENOUGH_ALLOCATORS or len(same) < len(allocators) / 2:
        return Cause.UNKNOWN, (
            f"{grows}; only {len(same)} of {len(allocators)} allocators and settings gave a clear "
            "answer. Not enough evidence: let it run longer."
        )
    says = (
        f"{grows}, and it stays the same under {len(same)} allocators and settings, and under "
        f"{_others(results)}: it is kept by the program, or by a library it uses, and is no effect "
        "of this machine's allocator."
    )
    if kept_by:
        says += f" Kept by {kept_by}"
    return Cause.KEPT, says


def _others(results: Sequence[FactorResult]) -> str:
    unclear = [one.title for one in results if one.effect is Effect.UNCLEAR]
    said = "everything else that was tried"
    return f"{said} with a clear answer (not: {', '.join(unclear)})" if unclear else said


def _doubt(as_it_is: Sequence[Trial], subject: Subject) -> str | None:
    """Why the program as it is cannot be relied on: two runs of it must say the same."""
    if len(as_it_is) < 2:
        return "The program as it is was run once only: not enough evidence."
    first, last = as_it_is[0], as_it_is[-1]
    if last.trouble:
        return f"The second run of the program as it is cannot be compared: {last.trouble}."
    effect, because = _effect(first, last, subject)
    if effect is not Effect.SAME:
        return (
            f"Two runs of the program as it is do not agree ({because}), so nothing follows from a "
            "run with something changed. Not enough evidence."
        )
    return None


def _results(state: State, subject: Subject) -> tuple[FactorResult, ...]:
    as_it_is = state.runs_of("")
    results = []
    for factor in state.factors:
        runs = state.runs_of(factor.id)
        if not runs:
            continue
        effects = [_effect(as_it_is[0], run, subject, factor) for run in runs]
        effect, because = effects[0]
        for other, why in effects[1:]:
            if other is not effect:
                effect, because = Effect.UNCLEAR, f"{because}; the second time: {why}"
        results.append(
            FactorResult(
                factor.id,
                factor.group,
                factor.title,
                factor.setting,
                effect,
                runs[-1].measured.live,
                runs[-1].measured.resident,
                because,
                len(runs),
            )
        )
    return tuple(results)


def _effect(
    as_it_is: Trial, trial: Trial, subject: Subject, factor: Factor | None = None
) -> tuple[Effect, str]:
    if trial.trouble:
        return Effect.UNCLEAR, trial.trouble
    is_started = factor is not None and factor.group is Cause.WORKERS
    if is_started and trial.start_method == as_it_is.start_method:
        return Effect.UNCLEAR, "the program chooses the start method itself"
    was, now, outcome = _comparable(as_it_is.measured, trial.measured, subject)
    if was is None or now is None:
        return Effect.UNCLEAR, "what grows could not be read under it"
    rates = f"{text.rate(was.value)} as it is, {text.rate(now.value)} now"
    if outcome is Outcome.UNKNOWN:
        return Effect.UNCLEAR, f"{rates}, without a verdict"
    less = difference(was, now)
    if outcome not in GROWS:
        if now.high <= _LEFT * was.value and less.low > 0:
            return Effect.REMOVED, rates
        return Effect.UNCLEAR, f"{rates}: no growth is seen, but it could have been missed"
    share = now.value / was.value
    if now.high <= _LEFT * was.value:
        return Effect.REMOVED, rates
    if share <= _REDUCED and less.low > 0:
        return Effect.REDUCED, rates
    if share > _SAME[1] and less.high < 0:
        return Effect.LARGER, rates
    if share >= _SAME[0]:
        return Effect.SAME, rates
    return Effect.UNCLEAR, f"{rates}, within the noise"


def _comparable(
    base: Measured, trial: Measured, subject: Subject
) -> tuple[Rate | None, Rate | None, Outcome | None]:
    """The same counter in both; mimalloc, for one, does not tell what is in use."""
    if subject.is_live and base.live is not None and trial.live is not None:
        return base.live, trial.live, trial.live_outcome
    if subject.is_live and base.resident_outcome not in GROWS:
        return None, None, None
    return base.resident, trial.resident, trial.resident_outcome


def _rate(measured: Measured, subject: Subject) -> Rate:
    rate = measured.live if subject.is_live else measured.resident
    return rate or Rate(0.0, 0.0, 0.0)


def _left(result: FactorResult, subject: Subject | None) -> float:
    rate = result.live if subject is not None and subject.is_live else result.resident
    return rate.value if rate is not None else float("inf")
