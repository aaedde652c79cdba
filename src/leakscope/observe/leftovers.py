"""What our looks leave in the heap, to be taken off the program's counters.

The first look leaves modules, the import of memray more of them. Every other one leaves some 50 KiB
at first, less each time: what it frees stays with the thread, in malloc's small bins, and malloc
counts it as in use. A window of memray leaves 160 KiB. Beside a program of 3 MiB that is watched by
the clock, it was a third to a half of what had grown between two looks (zoo/undo-linked-list).
"""

from __future__ import annotations

from leakscope.observe.pulse import Pulse

_MOST_BYTES, _MOST_BLOCKS = 256 << 10, 4096
"""Of one look, beyond the first. Malloc's small bins hold 236 KiB at most (64 of them, 7 pieces
each); what is more is the work of another thread meanwhile. So is less than nothing."""


class Leftovers:
    """Bytes and blocks of ours, without what the looks have noted and say themselves."""

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse
        self.bytes = 0
        self._since_opening = 0, 0

    def of_modules(self, before: dict[str, int], noted_bytes: int) -> None:
        """Of a first look, which loads all that any look needs, or of an import."""
        in_use, blocks = self._grown(before)
        self._add(max(in_use - noted_bytes, 0), max(blocks, 0))

    def of_opening(self, before: dict[str, int], known_bytes: int) -> None:
        """Without what is known of: noted, or taken by the tracer, which will give it back."""
        in_use, blocks = self._grown(before)
        self._since_opening = in_use - known_bytes, blocks

    def of_look(self, before: dict[str, int], traced_bytes: int) -> None:
        """Of a window, from before it was opened to the end of the look that closed it, without
        what the program did meanwhile."""
        (at_opening, blocks_then), (in_use, blocks) = self._since_opening, self._grown(before)
        self._since_opening = 0, 0
        left, left_blocks = at_opening + in_use - traced_bytes, blocks_then + blocks
        self._add(
            left if 0 < left <= _MOST_BYTES else 0,
            left_blocks if 0 < left_blocks <= _MOST_BLOCKS else 0,
        )

    def _add(self, left: int, blocks: int) -> None:
        self.bytes += left
        self._pulse.own_bytes += left
        self._pulse.own_blocks += blocks

    def _grown(self, before: dict[str, int]) -> tuple[int, int]:
        after = self._pulse.counters()
        in_use = after.get("in_use_bytes", 0) - before.get("in_use_bytes", 0)
        return in_use, after["blocks_count"] - before["blocks_count"]
