"""Counts events for the price of one subtraction, and looks up only when a row is due.

Between real steps our code is not in the processor's caches any more: reading a clock and two
dicts at each step cost 3 µs of a 0.5 ms step, a countdown costs one. How many events to let pass
is taken from their pace, and never more than so many, so that a program which slows down still
gets its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns

_MOST_PASSED = 64
_PASSED_UNHEARD = 8
"""Events of a source that gets no rows (something stronger counts the steps) are looked at so often
only: often enough to notice that the stronger one has fallen silent."""


class StepCounter:
    """The events of one source. A hook subtracts from `left` and calls `look` at zero."""

    __slots__ = ("_before", "_due_ns", "_length", "_row", "_since_ns", "left", "source")

    def __init__(
        self, source: str, row: Callable[[str], object], due_ns: Callable[[], int]
    ) -> None:
        self.source = source
        self._row = row
        self._due_ns = due_ns
        self.reset()

    def reset(self) -> None:
        self._before: float = 0
        self._length: float = 1
        self._since_ns = monotonic_ns()
        self.left: float = 1
        """Events until the next look. Halves are allowed: two reads can make one call."""

    @property
    def count(self) -> int:
        """All events so far."""
        return int(self._before + self._length - self.left)

    def tick(self) -> None:
        self.left -= 1
        if self.left <= 0:
            self.look()

    def look(self) -> None:
        """Take a row if one is due, then decide how many events may pass unseen."""
        passed = self._length - self.left
        is_first = self._before == 0
        # The row is taken with its step counted: `count` must be right from here on. No call
        # between these lines: another thread gets its turn at calls, and it counts too.
        self._before += self._length - self.left
        self._length = self.left = 0
        due_ns = self._due_ns()
        # The first event is always told: who counts the steps must not depend on a row's pace.
        if is_first or monotonic_ns() >= due_ns:
            self._row(self.source)
        has_rows = self._due_ns() != due_ns
        after = monotonic_ns()
        pace_ns = max(int((after - self._since_ns) / max(passed, 1)), 1)
        self._since_ns = after
        wait_ns = self._due_ns() - after
        is_unheard = wait_ns <= 0 and not has_rows
        length = _PASSED_UNHEARD if is_unheard else min(max(wait_ns // pace_ns, 1), _MOST_PASSED)
        # Other threads may have counted while the row was taken.
        self._before += self._length - self.left
        self._length = self.left = length

    def look_at_next(self) -> None:
        """Let no event pass unseen."""
        self._before = self.count
        self._length = 1
        self.left = 1
