"""Which lines of the program led to an object, for the few kinds that are noted when they are made.

A traced graph is made sixty frames below the line that called the function. tracemalloc keeps
sixteen, and does not reach that line. A trace takes tens of milliseconds, noting its lines ten
microseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any
from weakref import ref

from leakscope.model import Frame, SiteTally
from leakscope.observe.piles import our_tables, program_frames

_MOST_SITES = 4


class Origins:
    """Lines by object; holds none of the objects."""

    def __init__(self) -> None:
        self._lines: dict[int, tuple[ref[Any], tuple[Frame, ...], str]] = {}
        self._stacks: dict[tuple[Frame, ...], tuple[Frame, ...]] = {}
        self.made: Counter[tuple[Frame, ...]] = Counter()
        """How many were made by each line."""
        self.made_for: Counter[str] = Counter()
        self.alive_for: Counter[str] = Counter()
        """How many there were, and are, for each purpose."""
        tables = (self._lines, self._stacks, self.made, self.made_for, self.alive_for)
        our_tables.extend(tables)

    def note(self, it: Any, purpose: str = "") -> None:
        """It is being made right now, on this thread."""
        frames = program_frames()
        # The same few stacks come again and again: one copy of each.
        frames = self._stacks.setdefault(frames, frames)
        key = id(it)
        self._lines[key] = (ref(it, lambda _: self._forget(key)), frames, purpose)
        self.made[frames] += 1
        self.made_for[purpose] += 1
        self.alive_for[purpose] += 1

    def of(self, it: Any) -> tuple[Frame, ...]:
        known = self._lines.get(id(it))
        return known[1] if known is not None and known[0]() is it else ()

    def _forget(self, key: int) -> None:
        known = self._lines.pop(key, None)
        if known is not None:
            self.alive_for[known[2]] -= 1

    @property
    def alive(self) -> int:
        return len(self._lines)

    def sites_of(self, things: Iterable[Any]) -> tuple[SiteTally, ...]:
        stacks = Counter(frames for thing in things if (frames := self.of(thing)))
        return tuple(SiteTally(stack, count) for stack, count in stacks.most_common(_MOST_SITES))


class Places:
    """Lines of the program that made a holder of a framework's keep one more, by the name of the
    holder."""

    def __init__(self) -> None:
        self._by_holder: dict[str, Counter[tuple[Frame, ...]]] = {}
        our_tables.append(self._by_holder)

    def note(self, holder: str) -> None:
        """It gets one more right now, on this thread."""
        stacks = self._by_holder.get(holder)
        if stacks is None:
            stacks = self._by_holder[holder] = Counter()
            our_tables.append(stacks)
        stacks[program_frames()] += 1

    def sites_of(self, holder: str) -> tuple[SiteTally, ...]:
        stacks = self._by_holder.get(holder, Counter())
        found = [(frames, count) for frames, count in stacks.most_common(_MOST_SITES) if frames]
        return tuple(SiteTally(frames, count) for frames, count in found)


origins, places = Origins(), Places()
"""Of this process."""
