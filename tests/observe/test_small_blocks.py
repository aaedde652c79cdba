"""What one item keeps in Python's small blocks is what Python counts for it."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest

from leakscope.model import Blocks, bytes_of_a_block
from leakscope.observe.weigh import weigh


class Track:
    def __init__(self, frame: int) -> None:
        self.box = [frame + 0.5, frame + 1.5]
        self.name = f"track number {frame}"


class Slotted:
    __slots__ = ("before", "place")

    def __init__(self, place: int) -> None:
        self.place = place + 10_000
        self.before: Slotted | None = None


MAKERS: dict[str, Callable[[int], Any]] = {
    "floats": lambda step: [random.random() for _ in range(40)],
    "many floats": lambda step: [random.random() for _ in range(1_000)],
    "strings": lambda step: [f"token {step} {n}" for n in range(400)],
    "a row": lambda step: {"loss": random.random(), "step": step + 1_000, "note": f"at {step}"},
    "a tuple": lambda step: (step + 1_000, random.random(), f"key {step}"),
    "an instance": Track,
    "slots": Slotted,
    "a set": lambda step: {f"word {step} {n}" for n in range(12)},
    "a long string": lambda step: f"{step} " + "x" * 4_000,
}


@pytest.mark.parametrize("name", MAKERS)
def test_they_are_as_many_as_python_counts(name: str) -> None:
    """Breaks when growth of Python's objects is told in blocks of another size than theirs: a list
    of 1,500 numbers kept every epoch had half of its own growth, and was not called a leak."""
    make = MAKERS[name]
    kept: list[Any] = [None] * 4_000  # Python keeps a hundred freed lists and dicts for reuse
    gc.collect()
    gc.disable()
    try:
        before = sys.getallocatedblocks()
        for step in range(len(kept)):
            kept[step] = make(step)
        each = (sys.getallocatedblocks() - before) / len(kept)
    finally:
        gc.enable()
    weight = weigh(kept[100:110])
    assert weight.in_blocks.number == pytest.approx(each, rel=0.05, abs=0.1)
    assert weight.in_blocks.bytes <= 1.001 * weight.exclusive_bytes


def test_what_nobody_was_seen_to_keep_has_the_usual_size() -> None:
    assert bytes_of_a_block(100, Blocks(), usual=71.0) == 71.0
    assert bytes_of_a_block(100, Blocks(100, 3_200), usual=71.0) == 32.0
    assert bytes_of_a_block(100, Blocks(50, 1_600), usual=72.0) == 52.0
    assert bytes_of_a_block(100, Blocks(250, 8_000), usual=71.0) == 32.0
    assert bytes_of_a_block(0, Blocks(250, 8_000), usual=71.0) == 71.0
