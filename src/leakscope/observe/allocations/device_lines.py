"""Which line asked for device memory: the allocator's own history, a few steps long.

It is switched on for the steps of a window only (26 to 65 µs), and the stacks stay with the blocks
that are still in use after it is off. Memory that the backward pass asks for has no stack: it runs
in a thread of its own, without Python.
"""

from __future__ import annotations

from collections.abc import Iterable

from leakscope.model import BACKWARD, Frame, SiteTally
from leakscope.observe.devices.door import Block, Door, Snapshot, Stack
from leakscope.record.format import storable

_MOST_SITES = 16
_MOST_FRAMES = 24
_BY_BACKWARD: Stack = ((BACKWARD, 0, ""),)


class DeviceWindow:
    """Records stacks between `open` and `close`, unless the program does so itself."""

    def __init__(self, door: Door | None) -> None:
        self._door = door
        self._is_open = self._is_ours = False
        self._opened_step = self._closed_step = self._until_step = 0
        # Frozen sets of numbers: a look must not find them among what grows.
        self._before: frozenset[int] = frozenset()
        self._made: frozenset[int] = frozenset()

    @property
    def steps(self) -> int:
        """So many steps were recorded."""
        return self._closed_step - self._opened_step

    def open(self, step: int, traced: int) -> None:
        """Record for the first half of so many steps: what is in use at the end has then outlived
        the steps it was made in."""
        self._opened_step = self._closed_step = step
        self._until_step = step + max(traced // 2, 1)
        self._made = frozenset()
        if self._door is None or not self._door.is_open():
            return
        snapshot = self._door.snapshot()
        if snapshot is not None:
            self._before = frozenset(block.address for block in snapshot.blocks)
            self._is_open = True
            self._is_ours = self._door.record_stacks(True)

    def at_step(self, step: int) -> None:
        """At each step while the window is open."""
        if self._is_open and step >= self._until_step:
            self._stop(step)

    def close(self, step: int) -> Snapshot | None:
        """Stop, and say what is in use now. Stacks stay with blocks until they are freed."""
        if self._door is None or not self._door.is_open():
            return None
        if self._is_open:
            self._stop(step)
        return self._door.snapshot()

    def abandon(self) -> None:
        if self._is_ours and self._door is not None and self._door.is_open():
            self._door.record_stacks(False)
        self._is_open = self._is_ours = False

    def _stop(self, step: int) -> None:
        assert self._door is not None
        snapshot = self._door.snapshot()
        if snapshot is not None:
            self._made = frozenset(block.address for block in snapshot.blocks) - self._before
        self._before = frozenset()
        self._closed_step = step
        self.abandon()

    def stacks(self, blocks: Iterable[Block]) -> dict[int, Stack]:
        """Of what was made in the window: who asked for it. Without a stack that was the backward
        pass, which runs in a thread of its own without Python."""
        return {
            block.address: block.stack or _BY_BACKWARD
            for block in blocks
            if block.address in self._made
        }

    def survivors(self, blocks: Iterable[Block]) -> tuple[SiteTally, ...]:
        """What was asked for in the window and is in use still, by its line, the most first."""
        blocks = list(blocks)
        stacks = self.stacks(blocks)
        tallies: dict[Stack, tuple[int, int]] = {}
        for block in blocks:
            if (stack := stacks.get(block.address)) is not None:
                count, size = tallies.get(stack, (0, 0))
                tallies[stack] = (count + 1, size + block.bytes)
        found = sorted(tallies.items(), key=lambda one: -one[1][1])[:_MOST_SITES]
        return tuple(SiteTally(frames_of(stack), count, size) for stack, (count, size) in found)


def frames_of(stack: Stack) -> tuple[Frame, ...]:
    return tuple(Frame(storable(file), line, storable(function)) for file, line, function in stack)[
        :_MOST_FRAMES
    ]
