"""What a bisect may say, and when it has to say that it does not know."""

from __future__ import annotations

import pytest

from leakscope.bisect.conclude import best_factor, conclude
from leakscope.bisect.factors import Factor
from leakscope.bisect.state import State
from leakscope.bisect.trial import RSS, Subject
from leakscope.model import (
    BISECTION_SCHEMA,
    Cause,
    Effect,
    LeftOut,
    Measured,
    Outcome,
    Rate,
    Trial,
)

_KIB = 1024.0
_LIVE = Subject("main", RSS, False, True)
_RESIDENT = Subject("main", RSS, False, False)
_STEADY = (0.0, Outcome.STEADY)
_SAME = (100.0, Outcome.GROWING)
_FACTORS = (
    Factor("arenas", Cause.ALLOCATOR, "one arena", {"MALLOC_ARENA_MAX": "1"}),
    Factor("trim-threshold", Cause.ALLOCATOR, "trimmed", {"MALLOC_TRIM_THRESHOLD_": "131072"}),
    Factor("jemalloc", Cause.ALLOCATOR, "jemalloc", {"LD_PRELOAD": "/x.so"}),
    Factor("onednn-cache", Cause.CACHE, "no cache", {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "0"}),
    Factor("collect", Cause.COLLECTOR, "collecting", {}),
    Factor("start-spawn", Cause.WORKERS, "spawned", {}),
)


def _trial(
    factor: str,
    number: int,
    live: tuple[float, Outcome] | None,
    resident: tuple[float, Outcome] = _SAME,
    trouble: str = "",
    start_method: str = "fork",
) -> Trial:
    def rate(value: float) -> Rate:
        return Rate(value * _KIB, (value - 2) * _KIB, (value + 2) * _KIB)

    measured = Measured(
        rate(live[0]) if live is not None else None,
        live[1] if live is not None else None,
        rate(resident[0]),
        resident[1],
    )
    verdict = Outcome.GROWING
    return Trial(factor, number, 3.0, verdict, 300, "api", measured, factor, trouble, start_method)


def _state(subject: Subject | None, *trials: Trial) -> State:
    left_out = (LeftOut("one-thread", "nothing has threads"),)
    return State(
        BISECTION_SCHEMA, ("python", "x.py"), {}, subject, _FACTORS, left_out, "", list(trials)
    )


def _as_it_is(live: tuple[float, Outcome]) -> tuple[Trial, Trial]:
    return _trial("", 1, live), _trial("", 2, live)


def test_a_leak_stays_under_every_allocator() -> None:
    names = ("arenas", "trim-threshold", "jemalloc", "onednn-cache", "collect")
    trials = [_trial(name, 1, (97.0, Outcome.LEAK)) for name in names]
    state = _state(_LIVE, *_as_it_is(_SAME), *trials)
    state.kept_by = "train.py:34 (history.append(loss))"
    bisection = conclude(state)
    assert bisection.cause is Cause.KEPT
    assert "3 allocators and settings" in bisection.says
    assert "train.py:34" in bisection.says
    assert {one.effect for one in bisection.factors} == {Effect.SAME}
    assert best_factor(state) is None


def test_what_an_allocator_holds_does_not() -> None:
    state = _state(
        _RESIDENT,
        *_as_it_is(_STEADY),
        _trial("arenas", 1, _STEADY, (8.0, Outcome.GROWING)),
        _trial("trim-threshold", 1, _STEADY, (0.0, Outcome.STEADY)),
        _trial("jemalloc", 1, _STEADY, (70.0, Outcome.GROWING)),
    )
    best = best_factor(state)
    assert best is not None
    assert best.id == "trim-threshold"
    assert conclude(state).cause is Cause.UNKNOWN, "one run is not enough"
    state.trials.append(_trial("trim-threshold", 2, _STEADY, (0.0, Outcome.STEADY)))
    bisection = conclude(state)
    assert bisection.cause is Cause.ALLOCATOR
    assert "MALLOC_TRIM_THRESHOLD_=131072" in bisection.says
    assert "MALLOC_ARENA_MAX=1" in bisection.says
    assert "no leak" in bisection.says


@pytest.mark.parametrize(
    ("factor", "cause"), [("onednn-cache", Cause.CACHE), ("collect", Cause.COLLECTOR)]
)
def test_a_cache_and_garbage(factor: str, cause: Cause) -> None:
    state = _state(
        _LIVE,
        *_as_it_is(_SAME),
        _trial("arenas", 1, _SAME),
        _trial("jemalloc", 1, _SAME),
        _trial(factor, 1, _STEADY),
        _trial(factor, 2, _STEADY),
    )
    assert conclude(state).cause is cause


def test_not_enough_evidence() -> None:
    """Each of these has to end without an answer, and say why."""
    same = [_trial("arenas", 1, _SAME), _trial("jemalloc", 1, _SAME)]
    unsure = (90.0, Outcome.UNKNOWN)
    cases = {
        "once": _state(_LIVE, _trial("", 1, _SAME), *same),
        "do not agree": _state(_LIVE, _trial("", 1, _SAME), _trial("", 2, _STEADY), *same),
        "cannot be compared": _state(
            _LIVE, _trial("", 1, _SAME), _trial("", 2, _SAME, trouble="it exited with 1"), *same
        ),
        "only 1 of 3": _state(
            _LIVE,
            *_as_it_is(_SAME),
            _trial("arenas", 1, _SAME),
            _trial("trim-threshold", 1, unsure),
            _trial("jemalloc", 1, unsure),
        ),
        "count": _state(
            _LIVE,
            *_as_it_is(_SAME),
            _trial("jemalloc", 1, _STEADY),
            _trial("jemalloc", 2, _STEADY),
        ),
        "not in two runs": _state(_LIVE, *_as_it_is(_SAME), *same, _trial("collect", 1, _STEADY)),
        "outside of malloc": _state(
            _RESIDENT,
            *_as_it_is(_STEADY),
            _trial("arenas", 1, _STEADY),
            _trial("jemalloc", 1, _STEADY),
        ),
    }
    said = {name: conclude(state) for name, state in cases.items()}
    assert {name: one.cause for name, one in said.items()} == dict.fromkeys(cases, Cause.UNKNOWN)
    missing = [name for name, one in said.items() if name not in one.says and name != "count"]
    assert not missing
    assert "counters differ" in said["count"].says


def test_a_steady_run_that_could_have_missed_it_is_unclear() -> None:
    wide = Measured(Rate(0.0, -90 * _KIB, 90 * _KIB), Outcome.STEADY, None, None)
    trial = Trial("collect", 1, 3.0, Outcome.STEADY, 300, "api", wide, "x")
    bisection = conclude(_state(_LIVE, *_as_it_is(_SAME), trial))
    assert [one.effect for one in bisection.factors] == [Effect.UNCLEAR]
    assert "missed" in bisection.factors[0].because


def test_a_start_method_that_did_not_change_proves_nothing() -> None:
    trial = _trial("start-spawn", 1, _STEADY, start_method="fork")
    bisection = conclude(_state(_LIVE, *_as_it_is(_SAME), trial))
    assert bisection.factors[0].effect is Effect.UNCLEAR
    assert "chooses the start method itself" in bisection.factors[0].because


def test_two_runs_that_differ_are_unclear() -> None:
    state = _state(
        _LIVE, *_as_it_is(_SAME), _trial("collect", 1, _STEADY), _trial("collect", 2, _SAME)
    )
    bisection = conclude(state)
    assert bisection.factors[0].effect is Effect.UNCLEAR
    assert bisection.cause is Cause.UNKNOWN


def test_where_in_use_cannot_be_read_resident_memory_is_compared() -> None:
    """Breaks when mimalloc, which keeps its counters to itself, is taken for a cure."""
    state = _state(_LIVE, *_as_it_is(_SAME), _trial("jemalloc", 1, None, _SAME))
    assert conclude(state).factors[0].effect is Effect.SAME


def test_nothing_to_explain() -> None:
    steady = Trial("", 1, 3.0, Outcome.STEADY, 300, "api", Measured(None, None, None, None), "x")
    assert conclude(_state(None, steady)).cause is Cause.STEADY
