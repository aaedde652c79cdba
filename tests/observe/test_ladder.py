"""When a closer look is taken: on a rise, in order, within the budget; never on a flat program."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakscope.observe.budget import Budget
from leakscope.observe.ladder import Ladder, Rung
from leakscope.observe.trend import Trend

MS = 1_000_000
KIB = 1024


def climbs(
    in_use: list[int],
    *,
    share: float = 0.01,
    step_ns: int = 10 * MS,
    cost_ns: int = 50 * MS,
    is_foreign: bool = False,
    is_clock: bool = False,
    explained: float = 1.0,
    is_visible: bool = False,
    steps_a_row: int = 1,
    once_ns: int = 0,
    slowed_ns: int = 0,
) -> list[tuple[int, Rung]]:
    """Feed one reading a row; every rung that is due is climbed at a fixed cost.

    The first native window costs `once_ns` more, a row in any of them takes `slowed_ns` more."""
    ladder = Ladder(Budget(share, now_ns=0), is_foreign=is_foreign, is_clock=is_clock)
    climbed: list[tuple[int, Rung]] = []
    now_ns = 0
    for row, value in enumerate(in_use):
        step = row * steps_a_row
        is_in_native = bool(climbed) and climbed[-1][1] is Rung.NATIVE
        now_ns += step_ns + slowed_ns * is_in_native
        rung = ladder.due(now_ns, step, value, -1, -1)
        if rung is not None:
            is_first = rung is Rung.NATIVE and rung not in [one for _, one in climbed]
            climbed.append((step, rung))
            once = once_ns * is_first
            cpu_ns = cost_ns + once
            ended_ns = now_ns + cpu_ns
            ladder.climbed(
                rung,
                now_ns,
                ended_ns,
                step,
                cpu_ns=cpu_ns,
                once_ns=once,
                explained=explained,
                is_visible=is_visible,
            )
            now_ns = ended_ns
    return climbed


def test_a_leak_gets_a_first_look_a_window_and_a_second_look() -> None:
    """Breaks when a program of 100 steps that leaks 30 KiB a step has no answer at its end."""
    rungs = [rung for _, rung in climbs([step * 30 * KIB for step in range(100)])]
    assert rungs[:3] == [Rung.FIRST, Rung.WINDOW, Rung.SECOND]


def test_looks_are_at_doublings() -> None:
    steps = [
        s for s, rung in climbs([step * 30 * KIB for step in range(5000)]) if rung is Rung.SECOND
    ]
    first = next(s for s, rung in climbs([step * 30 * KIB for step in range(100)]))
    distances = [step - first for step in steps]
    assert all(later >= 2 * earlier - 8 for earlier, later in pairwise(distances))
    assert len(steps) >= 4


def test_a_window_is_closed_whatever_it_has_cost() -> None:
    """Breaks when tracing, which slows the program, can be left on for want of time."""
    rungs = [rung for _, rung in climbs([s * 30 * KIB for s in range(300)], cost_ns=120 * MS)]
    assert Rung.WINDOW in rungs
    assert rungs[rungs.index(Rung.WINDOW) + 1] is Rung.SECOND
    assert rungs.count(Rung.WINDOW) == rungs.count(Rung.SECOND)


@pytest.mark.parametrize(("is_clock", "looks"), [(False, 1), (True, 2)])
def test_by_the_clock_native_memory_is_suspected_after_two_looks(
    is_clock: bool, looks: int
) -> None:
    """Breaks when what three rounds of a loop have kept is called native: on a busy machine that is
    all that lies between two looks."""
    readings = [row * 30 * KIB for row in range(300)]
    rungs = [rung for _, rung in climbs(readings, explained=0.0, is_clock=is_clock)]
    assert rungs[: rungs.index(Rung.NATIVE)].count(Rung.SECOND) == looks


def test_what_python_can_see_grow_is_not_native() -> None:
    """Breaks when the cache of one request uses up the time for looks, in two native windows."""
    readings = [row * 30 * KIB for row in range(300)]
    rungs = [rung for _, rung in climbs(readings, explained=0.0, is_visible=True)]
    assert Rung.NATIVE not in rungs
    assert rungs.count(Rung.SECOND) > 1


@given(st.integers(1, 40))
def test_the_second_native_window_is_twice_the_first_however_many_steps_a_row_has(
    steps_a_row: int,
) -> None:
    """Breaks when the two cannot be compared: five steps and nine leave the same in flight."""
    readings = [row * 30 * KIB for row in range(300)]
    climbed = climbs(readings, explained=0.0, steps_a_row=steps_a_row)
    begun = [step for step, rung in climbed if rung is Rung.NATIVE]
    ended = [step for step, rung in climbed if rung is Rung.NATIVE_END]
    first, second = (end - begin for begin, end in zip(begun, ended, strict=True))
    assert second >= 2 * first


@pytest.mark.parametrize(("slowed_ms", "windows"), [(0, 2), (20, 2), (500, 1)])
def test_the_first_native_window_is_not_taken_in_vain(slowed_ms: int, windows: int) -> None:
    """Breaks when memray's import, dear on a slow machine, leaves nothing for the second (one
    window alone says nothing), or when a second that would be dearer still need not be earned."""
    readings = [row * 30 * KIB for row in range(200)]
    climbed = climbs(
        readings,
        cost_ns=150 * MS,
        once_ns=400 * MS,
        slowed_ns=slowed_ms * MS,
        explained=0.0,
    )
    assert [rung for _, rung in climbed].count(Rung.NATIVE) == windows


@given(st.lists(st.integers(0, 40 * KIB), min_size=10, max_size=400), st.integers(0, 2**40))
def test_scatter_below_what_matters_is_never_looked_at(scatter: list[int], base: int) -> None:
    assert climbs([base + value for value in scatter]) == []


def test_a_rise_that_stops_is_not_chased_for_long() -> None:
    """Breaks when warm-up is chased: the second look waits for the rise to go on."""
    warm_up = [min(step, 40) * 30 * KIB for step in range(2000)]
    rungs = [rung for _, rung in climbs(warm_up)]
    assert rungs.count(Rung.FIRST) <= 1
    assert rungs.count(Rung.SECOND) <= 2


@given(st.integers(1, 400), st.floats(0.001, 0.2))
def test_all_looks_together_stay_within_the_budget(cost_ms: int, share: float) -> None:
    """Credit of 60 s, 60 more for the first look's second, then the share of the time; a window
    once opened is always closed."""
    cost_ns = cost_ms * MS
    spent = cost_ns * len(climbs([s * 30 * KIB for s in range(3000)], share=share, cost_ns=cost_ns))
    lived_ns = 3000 * 10 * MS + spent
    assert spent <= (lived_ns + 120e9) * share + 2 * cost_ns


@pytest.mark.parametrize(("first_ms", "rungs"), [(500, 3), (1_300, 1)])
def test_a_first_look_that_was_dear_is_not_taken_in_vain(first_ms: int, rungs: int) -> None:
    """Breaks when a crowded machine takes both looks from a run of three seconds; or when nothing
    ends it."""
    ladder = Ladder(Budget(0.01, now_ns=0))
    now_ns = 0
    seen: list[Rung] = []
    for step in range(200):
        now_ns += 10 * MS
        rung = ladder.due(now_ns, step, step * 30 * KIB, -1, -1)
        if rung is not None:
            cost_ns = (100 if seen else first_ms) * MS
            seen.append(rung)
            ladder.climbed(rung, now_ns, now_ns + cost_ns, step, cpu_ns=cost_ns)
            now_ns += cost_ns
    assert seen == [Rung.FIRST, Rung.WINDOW, Rung.SECOND][:rungs]


def test_steps_do_not_pay_for_looks_at_what_was_built_before_them() -> None:
    """Breaks when a model that takes seconds to build leaves no look for its training; or when the
    report no longer says what all looks have cost."""
    budget = Budget(0.01, now_ns=0)
    budget.pay(600 * MS)
    assert not budget.allows(100 * MS, now_ns=0)
    budget.begin_anew()
    assert budget.allows(100 * MS, now_ns=0)
    assert budget.spent_ns == 600 * MS


def test_floors_ignore_what_a_step_makes_and_drops() -> None:
    trend = Trend(enough=48 * KIB)
    for step in range(600):
        trend.add(1_000_000 * (step % 6) + 100)
    assert not trend.rises


@given(st.integers(500, 100_000))
def test_a_slow_leak_rises_in_the_end(per_step: int) -> None:
    trend = Trend(enough=48 * KIB)
    for step in range(2000):
        trend.add(step * per_step)
    assert trend.rises


def test_what_is_kept_once_an_epoch_is_looked_at_after_it_was_kept_twice() -> None:
    """Breaks when the window opens after one more item: one more proves nothing."""
    epochs = [step // 50 * 2_000 * KIB for step in range(400)]
    climbed = climbs(epochs)
    first = next(step for step, rung in climbed if rung is Rung.FIRST)
    window = next(step for step, rung in climbed if rung is Rung.WINDOW)
    assert window // 50 - first // 50 >= 2


def test_a_rise_that_ends_after_the_first_look_is_not_waited_for_for_ever() -> None:
    ends = [min(step, 30) * 30 * KIB + (step > 31) * 3 * KIB * step for step in range(400)]
    assert Rung.WINDOW in [rung for _, rung in climbs(ends)]


def test_by_the_clock_the_time_of_a_look_is_no_time_of_the_program() -> None:
    """Breaks when the window opens right after a first look of 0.2 s, because so many ticks have
    passed: the program had made one step (zoo/cpu/manual-sgd-losses, five runs of six)."""
    look_ns, tick_ns = 200 * MS, 10 * MS
    ladder = Ladder(Budget(0.01, now_ns=0), is_clock=True)
    now_ns = ran_ns = 0
    ran_at: dict[Rung, int] = {}
    while Rung.SECOND not in ran_at:
        now_ns, ran_ns = now_ns + 2 * tick_ns, ran_ns + 2 * tick_ns
        step = now_ns // tick_ns
        rung = ladder.due(now_ns, step, ran_ns // tick_ns * 300 * KIB, -1, -1)
        if rung is not None:
            ran_at[rung] = ran_ns
            ladder.climbed(rung, now_ns, now_ns + look_ns, step, cpu_ns=look_ns)
            now_ns += look_ns
    assert ran_at[Rung.WINDOW] - ran_at[Rung.FIRST] >= 3 * tick_ns
    assert ran_at[Rung.SECOND] - ran_at[Rung.WINDOW] >= 2 * tick_ns


def test_a_leak_that_is_well_explained_waits_until_the_next_look_is_earned() -> None:
    def looks(explained: float) -> int:
        ladder = Ladder(Budget(0.01, now_ns=0))
        now_ns, seen = 0, 0
        for step in range(1_000):
            now_ns += 10 * MS
            rung = ladder.due(now_ns, step, step * 30 * KIB, -1, -1)
            if rung is not None:
                seen += rung is Rung.SECOND
                ladder.climbed(
                    rung, now_ns, now_ns + 100 * MS, step, cpu_ns=100 * MS, explained=explained
                )
        return seen

    assert looks(1.0) == 1
    assert looks(0.6) > 1


@given(st.integers(0, 2_000), st.integers(1, 200))
def test_a_pool_that_takes_a_region_is_not_looked_at_beside_tensorflow(at: int, mib: int) -> None:
    """Breaks when a clean `fit` is looked at: it takes 25 MiB at once and creeps 1 KiB a step."""
    pool = [step * KIB + (step >= at) * mib * KIB * KIB for step in range(2_500)]
    assert climbs(pool, is_foreign=True) == []


def test_graphs_that_pile_up_are_looked_at_beside_tensorflow() -> None:
    rungs = [rung for _, rung in climbs([s * 500 * KIB for s in range(100)], is_foreign=True)]
    assert rungs[:3] == [Rung.FIRST, Rung.WINDOW, Rung.SECOND]


def test_models_that_are_kept_now_and_then_are_looked_at_beside_tensorflow() -> None:
    trials = [step // 30 * 8_000 * KIB for step in range(600)]
    assert Rung.SECOND in [rung for _, rung in climbs(trials, is_foreign=True)]


def test_blocks_that_are_read_rarely_are_looked_at_in_time() -> None:
    """Breaks when a list of 22 blocks a step is first looked at near the end of 500 steps: a
    reading every 16 steps is dear, and six of them to a floor are a hundred steps."""
    ladder = Ladder(Budget(0.01, now_ns=0))
    for row in range(4 * 18):
        blocks = 1_000_000 + row // 4 * 350 if row % 4 == 0 else -1
        if ladder.due(row * 10 * MS, row * 4, 100_000 * KIB, blocks, -1) is not None:
            return
    pytest.fail("not looked at by the eighteenth reading")


def test_what_a_look_leaves_is_no_rise_of_the_program() -> None:
    """1.4 MiB every 20 steps, and some KiB right after the first look: the window waits until what
    is kept has come twice."""

    def memory(looked_at: int | None) -> list[int]:
        return [
            100 * 1024 * KIB
            + 1400 * KIB * (step // 20)
            + (0 if looked_at is None else min(max(step - looked_at, 0), 6) * 3 * KIB)
            for step in range(200)
        ]

    (first, _), *_ = climbs(memory(None))
    rungs = climbs(memory(first))
    assert rungs[0] == (first, Rung.FIRST)
    step, rung = rungs[1]
    assert rung is Rung.WINDOW
    assert step // 20 - first // 20 >= 2
