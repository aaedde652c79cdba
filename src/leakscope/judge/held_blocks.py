"""How large Python's blocks are, by those that holders were seen to keep.

The counters say how many there are. Between two looks they are compared with what was weighed: a
list of numbers has 32 bytes to a block, and at the usual 71 it was growth of twice its size, of
which half seemed to be nobody's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leakscope.judge.axis import Axis, found_in_steps, of_last_look
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
    steps: float
    """How far apart they were, on the axis that the process is judged on."""


def find_held_blocks(recording: Recording, process: str, axis: Axis) -> HeldBlocks | None:
    """From the first look to the last window; None where they do not say."""
    looks = [
        (mark.at.step, mark.values["blocks_count"], mark.at.mono_ns)
        for mark in recording.marks
        if mark.process == process
        and mark.what == LOOKS[0]
        and mark.at.step is not None
        and "blocks_count" in mark.values
    ]
    if len(looks) < 2 or recording.pool_of(process):
        return None
    (first, before, began_ns), (last, after, ended_ns) = looks[0], looks[-1]
    held = NO_BLOCKS
    found = [one for one in found_in_steps(recording, process) if one.blocks_each > 0]
    for holding in of_last_look(found):
        if (rate := holding.count_per_step) > 0:
            each = Blocks(holding.blocks_each, holding.in_blocks)
            held = held.plus(each, times=rate * (last - first))
    if held.number <= 0 or after <= before:
        return None
    began, ended = axis.at(np.array([began_ns, ended_ns], dtype=np.float64))
    return HeldBlocks(after - before, held, float(ended - began))


def as_held(size: Rate, held: HeldBlocks | None, per_step: float) -> Rate:
    """By the weight of those that holders keep, where they keep most of them. `per_step`: by how
    many more there are, in the part of the run that was judged. At the first looks a program may
    still warm up (144 blocks came in 30 steps, of which an embedding cache kept 60, and 60 in any
    30 steps from there on)."""
    if held is None:
        return size
    later = per_step * held.steps
    grown = min(held.grown, later) if later > 0 else held.grown
    if held.held.number < _MOST_HELD * grown:
        return size
    each = bytes_of_a_block(grown, held.held, size.value)
    return Rate(each, min(each, size.low), max(each, size.high))
