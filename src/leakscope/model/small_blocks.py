"""Python's blocks: how many there are is counted, how large they are is not.

`sys.getallocatedblocks()` counts what Python's own allocator has given out: pieces of up to 512
bytes, and larger ones that it has from malloc, whose counters have their bytes. What holders are
seen to keep can be weighed piece by piece; the rest is taken to be of the usual size.
"""

from __future__ import annotations

from typing import NamedTuple

USUAL_BLOCK_BYTES = 71.0
"""What mixed lists, dicts and strings came to (7.2 KB for 102 blocks a step, measured by RSS). A
list of numbers is at 32."""

LARGEST_BLOCK_BYTES = 512
"""What is larger comes from malloc, and is counted there too."""


class Blocks(NamedTuple):
    """Some of Python's blocks. Of one item of many, on average: hence no whole numbers."""

    number: float = 0.0
    bytes: float = 0.0
    """Without what malloc counts."""

    def plus(self, other: Blocks, times: float = 1.0) -> Blocks:
        return Blocks(self.number + times * other.number, self.bytes + times * other.bytes)

    def times(self, factor: float) -> Blocks:
        return Blocks(factor * self.number, factor * self.bytes)


NO_BLOCKS = Blocks()


def bytes_of_a_block(grown: float, held: Blocks, usual: float = USUAL_BLOCK_BYTES) -> float:
    """Of `grown` blocks more, where holders keep those `held` of them, how large one is."""
    if grown <= 0 or held.number <= 0:
        return usual
    covered = min(held.number / grown, 1.0)
    return covered * held.bytes / held.number + (1.0 - covered) * usual
