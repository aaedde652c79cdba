"""What was born in a window and is still there: the `gc.freeze` difference.

Freezing takes all objects out of the collector's lists (5 µs at any size of the heap), so what the
lists hold later has been born since: 0.1 ms instead of 60 for looking at everything. While frozen,
older garbage is not collected; the window is a few steps long.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections import Counter
from itertools import compress
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from leakscope.model import FREEZES
from leakscope.observe.anatomy import is_exactly
from leakscope.observe.moments import wait_for_calm
from leakscope.observe.referents import referents_of

FROZEN_BY_PYTHON = 1_000
"""Python 3.12 starts with 375 frozen objects; `gc.freeze()` hides 4,800 in a bare Python."""

_MOST_BORN = 20_000
_MOST_TOGETHER = 10_000
_NO_WAY = (type, ModuleType, FunctionType, CodeType, FrameType)
_weakref_offset: Any = type.__dict__["__weakrefoffset__"]


class Survivors:
    """`begin`, `mark` a step or two later, and `end` some steps after that: what was born before
    the mark and has outlived the steps behind it.

    Frozen is only what was there at the beginning, and only until the mark. From there on the
    newborn are followed by weak references: addresses are used again at once, and tell nothing.
    Lists, dicts and tuples cannot be followed so; what grows by them is found by their length.
    """

    def __init__(self) -> None:
        self._is_open = False
        self._began = self._marked = 0
        self._until = 0
        self._born: list[weakref.ref[Any]] = []
        self._elder: list[None] = []
        self._junior: list[None] = []
        """Two objects of our own, born before and after the freeze: they tell whether the program
        has thawed or frozen everything in between."""
        self.why_not = ""

    @property
    def steps(self) -> int:
        """How many steps the survivors were born in."""
        return self._marked - self._began

    def begin(self, step: int, mark_after: int = 1) -> None:
        self._born = []
        self.why_not = ""
        if gc.get_freeze_count() > FROZEN_BY_PYTHON:
            # Somebody else uses the permanent generation; thawing ours would thaw theirs.
            self.why_not = FREEZES
            return
        self._elder = []
        gc.freeze()
        self._junior = []
        self._is_open = True
        self._began, self._until = step, step + mark_after

    def mark(self, step: int) -> None:
        """Once the newborn of enough steps are there: thaw, and follow them."""
        if self._is_open and step >= self._until:
            born = self._thaw()
            self._marked = step
            self._born = list(map(weakref.ref, born[:_MOST_BORN]))

    def end(self) -> list[Any]:
        """The survivors; none without a mark, or if the program froze or thawed meanwhile."""
        self.abandon()
        born, self._born = self._born, []
        return [one for reference in born if (one := reference()) is not None]

    def abandon(self) -> None:
        """Thaw what we froze."""
        if self._is_open:
            self._thaw()

    def _thaw(self) -> list[Any]:
        """What was born since and can be followed; nothing if the program interfered."""
        self._is_open = False
        try:
            wait_for_calm()
        except RuntimeError as error:
            self.why_not = str(error)
            gc.unfreeze()
            return []
        kinds = {id(kind): kind for kind in map(type, gc.get_objects())}
        wanted = {key for key, kind in kinds.items() if _weakref_offset.__get__(kind)}
        # Dropped at once: it may have a tuple that another thread is filling right now, and Python
        # refuses to fill one that somebody else refers to.
        young = gc.get_objects()
        born = list(compress(young, map(wanted.__contains__, map(id, map(type, young)))))
        tracked = set(map(id, young))
        del young
        if id(self._elder) in tracked:
            self.why_not = "the program itself uses gc.unfreeze"
            return []
        if id(self._junior) not in tracked:
            # It froze everything alive, which is all that we had frozen and more: as it wants it.
            self.why_not = FREEZES
            return []
        gc.unfreeze()
        return born


def garbage_among(objects: list[Any]) -> list[Any]:
    """Those that nothing holds but themselves: cycles waiting for the collector.

    The collector's own method, without collecting: they and what they lead to are taken together,
    references from within are taken off each one's count, and what has some left is held from
    outside, with all that it leads to.
    """
    together = _with_what_they_lead_to(objects)
    index = {id(one): place for place, one in enumerate(together)}
    # Our own references: the list's, the loop's, the argument's, as this Python counts them.
    (ours,) = [sys.getrefcount(one) for one in [object()]]
    counts = [sys.getrefcount(one) - ours for one in together]
    for one in objects:
        counts[index[id(one)]] -= 1  # the caller's list
    edges: list[list[int]] = []
    for one in together:
        targets = [index[id(other)] for other in referents_of(one) if id(other) in index]
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
    return [one for place, one in enumerate(together) if place not in reached]


def _with_what_they_lead_to(objects: list[Any]) -> list[Any]:
    """Nearest first, at most so many; no classes, modules and functions, which all the rest of the
    program hangs on."""
    together = list(objects)
    seen = set(map(id, objects))
    for one in together:  # grows while it is read
        if len(together) >= _MOST_TOGETHER:
            break
        for other in referents_of(one):
            if id(other) not in seen and gc.is_tracked(other) and not is_exactly(other, *_NO_WAY):
                seen.add(id(other))
                together.append(other)
    return together


def kinds_of(objects: list[Any]) -> list[tuple[type, int]]:
    """The types, by id, with how many there are, the most frequent first."""
    counts = Counter(map(id, map(type, objects)))
    kinds = {id(kind): kind for kind in map(type, objects)}
    return [(kinds[key], count) for key, count in counts.most_common()]


def sample_of(objects: list[Any], kind: type, most: int) -> list[Any]:
    those = [one for one in objects if type(one) is kind]
    return those[:: max(len(those) // most, 1)][:most]
