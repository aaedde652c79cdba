"""Lines that are counted without an event, for a while: an iterator for each, which the line's code
steps (see line_marks.py), and which is refilled here."""

from __future__ import annotations

from typing import Any

_LONGEST = 256
"""Python has the numbers up to this ready: counting with larger ones would make objects."""


class Countdowns:
    def __init__(self) -> None:
        # A range's iterator can be set to any place again, also when it has come to its end.
        self._iterators: dict[int, Any] = {}
        self._granted: dict[int, int] = {}

    def of(self, slot: int) -> Any:
        """The line's own; at its end from the start, so that the first execution is an event."""
        if slot not in self._iterators:
            self._iterators[slot] = iter(range(_LONGEST))
            self._iterators[slot].__setstate__(_LONGEST)
            self._granted[slot] = 0
        return self._iterators[slot]

    def set(self, slot: int, wait: int) -> None:
        """Let so many executions go by."""
        self._granted[slot] = wait = min(wait, _LONGEST)
        self._iterators[slot].__setstate__(_LONGEST - wait)

    def take(self, slot: int) -> int:
        """How many have gone by; the next one is an event."""
        granted = self._granted.get(slot, 0)
        if not granted:
            return 0
        one = self._iterators[slot]
        gone = granted - int(one.__length_hint__())
        self._granted[slot] = 0
        one.__setstate__(_LONGEST)
        return gone
