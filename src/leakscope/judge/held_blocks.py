"""How large Python's blocks are, by those that holders were seen to keep.

The counters say how many there are. Between two looks they are compared with what was weighed: a
list of numbers has 32 bytes to a block, and at the usual 71 it was growth of twice its size, of
which half seemed to be nobody's.
"""

from __future__ import annotations

from typing import NamedTuple

from leakscope.judge.axis import found_in_steps, of_last_look
from leakscope.model import LOOKS, NO_BLOCKS, Blocks, Rate, bytes_of_a_block
from leakscope.record.reader import Recording

_MOST_HELD = 0.5
"""Of the blocks that came. Fewer say little of the others; what RSS grew by does then. A choice."""


class HeldBlocks(NamedTuple):
    """Between two looks at one process."""

    grown: float
    """By how many blocks more there were."""
    held: Blocks
    """What holders kept more of."""


def find_held_blocks(recording: Recording, process: str) -> HeldBlocks | None:
    """From the first look to the last window; None where they do not say."""
    looks = [
        (mark.at.step, mark.values["blocks_count"])
        for mark in recording.marks
        if mark.process == process
        and mark.what == LOOKS[0]
        and mark.at.step is not None
        and "blocks_count" in mark.values
    ]
    if len(looks) < 2 or recording.pool_of(process):
        return None
    (first, before), (last, after) = looks[0], looks[-1]
    held = NO_BLOCKS
    found = [one for one in found_in_steps(recording, process) if one.blocks_each > 0]
    for holding in of_last_look(found):
        if (rate := holding.count_per_step) > 0:
            each = Blocks(holding.blocks_each, holding.in_blocks)
            held = held.plus(each, times=rate * (last - first))
    if held.number <= 0 or after <= before:
        return None
    return HeldBlocks(after - before, held)


def as_held(size: Rate, held: HeldBlocks | None) -> Rate:
    """By the weight of those that holders keep, where they keep most of them."""
    if held is None or held.held.number < _MOST_HELD * held.grown:
        return size
    each = bytes_of_a_block(held.grown, held.held, size.value)
    return Rate(each, min(each, size.low), max(each, size.high))
