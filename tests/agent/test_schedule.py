"""When heap snapshots are taken: on a rise, at growing distances, within the budget."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakscope.agent.budget import Budget
from leakscope.agent.schedule import Action, Schedule
from leakscope.agent.trend import Trend

MS = 1_000_000
KIB = 1024
SECOND = 1_000 * MS


def plan(
    in_use: list[int],
    *,
    share: float = 0.01,
    step_ns: int = 10 * MS,
    cost_ns: int = 50 * MS,
    blocks: int = 300_000,
    visible: float = 1.0,
    is_clock: bool = False,
    is_pooled: bool = False,
) -> list[tuple[int, Action]]:
    """Feed one reading a step; whatever is due is done at a fixed cost."""
    schedule = Schedule(Budget(share, now_ns=0), is_clock=is_clock, is_pooled=is_pooled)
    done: list[tuple[int, Action]] = []
    now_ns = 0
    for step, value in enumerate(in_use):
        now_ns += step_ns
        action = schedule.due(now_ns, step, value, blocks, -1)
        if action is not None:
            done.append((step, action))
            ended_ns = now_ns + cost_ns
            schedule.done(action, now_ns, ended_ns, step, cpu_ns=cost_ns, visible=visible)
            now_ns = ended_ns
    return done


def leak(steps: int, per_step: int = 30 * KIB) -> list[int]:
    return [step * per_step for step in range(steps)]


def test_a_leak_gets_three_snapshots_and_a_tracing_window_before_the_third() -> None:
    """Breaks when a program of 120 steps that leaks 30 KiB a step has no answer at its end."""
    actions = [action for _, action in plan(leak(120))]
    wanted = [Action.SNAPSHOT, Action.SNAPSHOT, Action.WINDOW, Action.SNAPSHOT]
    assert actions[:4] == wanted


def test_distances_between_snapshots_do_not_shrink_and_later_double() -> None:
    steps = [s for s, action in plan(leak(9000)) if action is Action.SNAPSHOT]
    distances = [step - steps[0] for step in steps[2:]]
    assert len(steps) >= 5
    assert all(later >= 2 * earlier - 8 for earlier, later in pairwise(distances))


def test_a_flat_program_is_looked_at_once_when_its_time_has_paid_for_it() -> None:
    done = plan([100 * KIB] * 3000)
    assert [action for _, action in done] == [Action.ACCOUNT]
    assert (done[0][0] + 1) * 10 * MS * 0.01 >= 300_000 * 150


def test_a_short_flat_program_is_not_looked_at() -> None:
    assert plan([100 * KIB] * 300) == []


def test_a_tracing_window_is_closed_whatever_it_has_cost() -> None:
    done = plan(leak(400), cost_ns=3 * SECOND, step_ns=50 * MS)
    opened = [place for place, (_, action) in enumerate(done) if action is Action.WINDOW]
    assert all(done[place + 1][1] is Action.SNAPSHOT for place in opened if place + 1 < len(done))


@given(
    st.lists(st.integers(0, 200_000), min_size=50, max_size=600),
    st.sampled_from([0.001, 0.01, 0.1]),
)
def test_snapshots_never_cost_more_than_the_budget_and_its_allowance(
    jumps: list[int], share: float
) -> None:
    """Whatever memory does. The three that growth by path needs are paid from the allowance."""
    total, in_use = 0, []
    for jump in jumps:
        total += jump
        in_use.append(total)
    budget = Budget(share, now_ns=0)
    schedule = Schedule(budget)
    now_ns = 0
    for step, value in enumerate(in_use):
        now_ns += 10 * MS
        action = schedule.due(now_ns, step, value, 300_000, -1)
        if action is not None:
            schedule.done(action, now_ns, now_ns + 50 * MS, step, cpu_ns=50 * MS)
    allowed = (now_ns + 2 * budget.credit_s * SECOND) * share
    assert budget.spent_ns <= allowed + 2 * 50 * MS


def test_memory_that_snapshots_do_not_see_is_traced_natively_twice() -> None:
    actions = [action for _, action in plan(leak(600), visible=0.1)]
    assert actions.count(Action.NATIVE) == actions.count(Action.NATIVE_END) == 2
    assert actions.index(Action.NATIVE) > actions.index(Action.SNAPSHOT) + 1


def test_the_second_native_window_is_longer_than_the_first() -> None:
    done = plan(leak(600), visible=0.1)
    opened = [step for step, action in done if action is Action.NATIVE]
    closed = [step for step, action in done if action is Action.NATIVE_END]
    first, second = (end - begin for begin, end in zip(opened, closed, strict=True))
    assert second >= 2 * first


def test_what_is_kept_once_in_fifty_steps_has_been_kept_between_snapshots() -> None:
    """Breaks when two snapshots 24 steps apart meet the same holder with nothing more in it."""
    in_use = [(step // 50) * 400 * KIB for step in range(2000)]
    steps = [s for s, action in plan(in_use) if action is Action.SNAPSHOT]
    assert len(steps) >= 3
    assert all(later // 50 > earlier // 50 for earlier, later in pairwise(steps))


@pytest.mark.parametrize("is_pooled", [False, True])
def test_beside_a_framework_with_pools_a_small_rise_is_no_reason(is_pooled: bool) -> None:
    done = plan(leak(300, per_step=2 * KIB), is_pooled=is_pooled)
    assert any(action is Action.SNAPSHOT for _, action in done) is not is_pooled


def test_a_trend_forgets_no_slow_rise() -> None:
    """Breaks when floors that are merged lose what a slow leak has come to."""
    trend = Trend(48 * KIB)
    for step in range(20_000):
        trend.add(step * 8)
    assert trend.rises
