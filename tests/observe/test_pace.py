"""How the pulse paces itself, without a clock in the test."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from leakscope.observe.counters.pulse import smooth, starved
from leakscope.observe.counters.step_counter import StepCounter


def test_one_preempted_reading_does_not_silence_the_pulse() -> None:
    """Breaks when a single measurement of 10 ms counts as the cost of a reading of 10 µs."""
    estimate = 10_000.0
    estimate = smooth(estimate, 10_000_000)
    assert estimate < 20_000


@settings(derandomize=True)
@given(st.floats(1, 1e7), st.lists(st.floats(1, 1e7), max_size=200), st.floats(100, 1e6))
def test_a_lasting_cost_is_learned(first: float, noise: list[float], lasting: float) -> None:
    """Breaks when the estimate leaves the range of what was measured, or does not follow it."""
    estimate = first
    for measured in noise:
        low, high = min(estimate, measured), max(estimate, measured)
        estimate = smooth(estimate, measured)
        assert low <= estimate <= high
    for _ in range(400):
        estimate = smooth(estimate, lasting)
    assert abs(estimate - lasting) < 0.01 * lasting


def test_a_worker_with_a_part_of_a_core_has_rows_for_that_part() -> None:
    """Breaks when eight workers on two cores pay for rows as if each had a core."""
    assert starved(4_000, 1_000) == 8.0  # what one of many says, the others say too
    assert starved(1_000, 1_900) == 1.0  # two threads
    assert starved(1_000, 0) == 1.0  # nothing measured yet
    assert starved(1_000_000, 1) <= 20  # one that waits is not forgotten


class _Due:
    """Rows as the agent takes them, at moments that the test decides."""

    def __init__(self) -> None:
        self.rows = 0
        self.due_ns = 0

    def row(self, source: str) -> None:
        self.rows += 1


@settings(derandomize=True)
@given(st.integers(1, 2000), st.integers(0, 10**10))
def test_every_event_is_counted_however_many_pass_unseen(events: int, due_ns: int) -> None:
    """Breaks when letting events pass unseen loses or doubles one."""
    due = _Due()
    due.due_ns = due_ns
    counter = StepCounter("forward", due.row, lambda: due.due_ns)
    for event in range(1, events + 1):
        counter.tick()
        assert counter.count == event


def test_two_halves_make_one_event() -> None:
    """Breaks when a compiled module, which reads its attribute twice a call, counts double."""
    due = _Due()
    counter = StepCounter("forward", due.row, lambda: 1 << 62)
    for _ in range(100):
        for _ in range(2):
            counter.left -= 0.5
            if counter.left <= 0:
                counter.look()
    assert counter.count == 100
