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

_STEPS_BEFORE_MARK = 2
_FROZEN_BY_PYTHON = 10_000
"""Python 3.12 starts with 375 frozen objects; `gc.freeze()` in a training program hides 290,000."""


class Survivors:
    """A window: `begin` it, `mark` it some steps later, `end` it some steps after that, and get
    what was born before the mark and has outlived the steps behind it."""

    def __init__(self) -> None:
        self._is_open = False
        self._began = self._marked = 0
        self._young: set[int] | None = None
        self._elder: list[None] = []
        self._junior: list[None] = []
        """Two objects of our own, born before and after the freeze: they tell whether the program
        has thawed or frozen everything in between."""
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
        self._elder = []
        gc.freeze()
        self._junior = []
        self._is_open = True
        self._began = step
        self._young = None

    def mark(self, step: int) -> None:
        """Remember, by address, what has been born so far; again at each of the first steps."""
        if self._is_open and self._began < step <= self._began + _STEPS_BEFORE_MARK:
            self._young = set(map(id, gc.get_objects()))
            self._marked = step

    def end(self) -> list[Any]:
        """The survivors; none without a window and a mark in it, or if the program froze too."""
        young = self._young
        born = self.abandon()
        return [one for one in born if id(one) in young] if young else []

    def abandon(self) -> list[Any]:
        """Thaw what we froze, and say what was born since; nothing if the program interfered."""
        if not self._is_open:
            return []
        self._is_open = False
        self._young = None
        born = gc.get_objects()
        tracked = set(map(id, born))
        if id(self._elder) in tracked:
            self.why_not = "the program itself uses gc.unfreeze"
            return []
        if id(self._junior) not in tracked:
            # It froze everything alive, which is all that we had frozen and more: as it wants it.
            self.why_not = "the program itself uses gc.freeze"
            return []
        gc.unfreeze()
        return born


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
