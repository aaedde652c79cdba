"""What our looks leave in the heap is not the program's growth."""

from __future__ import annotations

from pathlib import Path

import pytest

from leakscope.observe.leftovers import Leftovers
from leakscope.observe.pulse import Pulse
from leakscope.record.writer import Writer

MIB = 1 << 20


class Heap:
    """malloc's counter, as far as a pulse reads it."""

    def __init__(self) -> None:
        self.in_use = 10 * MIB

    def read(self) -> tuple[int, int]:
        return self.in_use, 0


@pytest.fixture
def heap() -> Heap:
    return Heap()


@pytest.fixture
def pulse(tmp_path: Path, heap: Heap) -> Pulse:
    return Pulse("1-1", Writer(str(tmp_path / "x.jsonl")), heap.read)


def in_use(pulse: Pulse) -> int:
    return pulse.counters()["in_use_bytes"]


def test_what_a_window_leaves_is_taken_off_and_what_the_program_did_in_it_is_not(
    pulse: Pulse, heap: Heap
) -> None:
    left = Leftovers(pulse)
    before = pulse.counters()
    heap.in_use += 20_000 + 2_000 + 3_000  # noted, the tracer's, and left
    left.of_opening(before, 20_000 + 2_000)
    heap.in_use += 70_000 + 30_000  # the program's, and the tracer's
    before = pulse.counters()
    heap.in_use += 50_000 - 32_000
    left.of_look(before, -32_000)
    pulse.own_bytes = left.bytes + 20_000
    assert left.bytes == 53_000
    assert in_use(pulse) == 10 * MIB + 70_000


@pytest.mark.parametrize("grown", [-40_000, 300_000])
def test_what_another_thread_did_meanwhile_is_not_ours(
    pulse: Pulse, heap: Heap, grown: int
) -> None:
    """Breaks when the batch of a second thread, freed or made while we looked, shifts the counters
    for good."""
    left = Leftovers(pulse)
    left.of_opening(pulse.counters(), 0)
    before = pulse.counters()
    heap.in_use += grown
    left.of_look(before, 0)
    assert left.bytes == 0
    assert in_use(pulse) == 10 * MIB + grown


def test_modules_are_ours_however_large(pulse: Pulse, heap: Heap) -> None:
    left = Leftovers(pulse)
    before = pulse.counters()
    heap.in_use += 2 * MIB
    left.of_modules(before, 0)
    assert left.bytes == 2 * MIB
    assert in_use(pulse) == 10 * MIB
