"""What was born in a window and is still there: the `gc.freeze` difference.

Freezing takes all objects out of the collector's lists (5 µs at any size of the heap), so what the
lists hold later has been born since: 0.1 ms instead of 60 for looking at everything. While frozen,
older garbage is not collected; the window is a few steps long.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from typing import Any


_FROZEN_BY_PYTHON = 10_000
"""Python 3.12 starts with 375 frozen objects; `gc.freeze()` in a training program hides 290,000."""


class Survivors:
    """A window: `begin` it, `mark` it some steps later, `end` it some steps after that, and get
    what was born before the mark and has outlived the steps behind it."""

    def __init__(self) -> None:
        self._is_open = False
        self._began = self._marked = 0
        self._young: set[int] | None = None
        self.why_not = ""

    @property
    def steps(self) -> int:
        """How many steps the survivors were born in."""
        return self._marked - self._began

    def begin(self, step: int) -> None:
        if self._is_open:
            return
        if gc.get_freeze_count() > _FROZEN_BY_PYTHON:
            # Somebody else uses the permanent generation; thawing ours would thaw theirs.
            self.why_not = "the program itself uses gc.freeze"
            return
        gc.freeze()
        self._is_open = True
        self._began = step
        self._young = None

    def mark(self, step: int) -> None:
        """Remember, by address, what has been born so far."""
        if self._is_open and self._young is None and step > self._began:
            self._young = set(map(id, gc.get_objects()))
            self._marked = step

    def end(self) -> list[Any]:
        """The survivors; none if there was no window, or no mark in it."""
        if not self._is_open:
            return []
        young, self._young = self._young, None
        born = [one for one in gc.get_objects() if id(one) in young] if young else []
        self.abandon()
        return born

    def abandon(self) -> None:
        if self._is_open:
            self._is_open = False
            self._young = None
            gc.unfreeze()


def garbage_among(objects: list[Any]) -> list[Any]:
    """Those that nothing outside of them holds: cycles waiting for the collector.

    The collector's own method, without collecting: references from within are taken off each
    object's count; what has some left is held from outside, and so is all it reaches.
    """
    index = {id(one): place for place, one in enumerate(objects)}
    # Our own references: the list's, the loop's, the argument's, as this Python counts them.
    (ours,) = [sys.getrefcount(one) for one in [object()]]
    counts = [sys.getrefcount(one) - ours for one in objects]
    edges: list[list[int]] = []
    for one in objects:
        targets = [index[id(other)] for other in gc.get_referents(one) if id(other) in index]
        edges.append(targets)
        for target in targets:
            counts[target] -= 1
    held = [place for place, count in enumerate(counts) if count > 0]
    reached = set(held)
    while held:
        for target in edges[held.pop()]:
            if target not in reached:
                reached.add(target)
                held.append(target)
    return [one for place, one in enumerate(objects) if place not in reached]


def kinds_of(objects: list[Any]) -> Counter[type]:
    return Counter(map(type, objects))


def sample_of(objects: list[Any], kind: type, most: int) -> list[Any]:
    those = [one for one in objects if type(one) is kind]
    return those[:: max(len(those) // most, 1)][:most]
