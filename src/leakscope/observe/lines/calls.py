"""What a ledger keeps of a function that is watched, of a call of it, and of one measurement."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from time import perf_counter_ns
from types import CodeType

from leakscope.observe.lines.accounts import Account, Opened
from leakscope.observe.lines.tally import Tally


class Readings:
    """Levels at the start of something and at its end.

    Everything is allocated before the first reading: between the readings nothing of ours changes.
    """

    __slots__ = ("after", "before", "plan")

    def __init__(self, plan: list[tuple[Tally, int]]) -> None:
        self.plan = plan
        """Which tallies are read, the dearest first, and why."""
        self.before = array("q", bytes(16 * len(plan) + 8))
        self.after = array("q", bytes(16 * len(plan) + 8))

    def begin(self) -> None:
        before, at = self.before, 0
        for tally, _ in self.plan:
            before[at], before[at + 1] = tally.timed_read()
            at += 2

    def note_times(self, planned_ns: int) -> None:
        """When it began, and what it took to come so far; in the arrays, for a number kept
        elsewhere would be a small object more."""
        self.before[-1] = perf_counter_ns()
        self.after[-1] = self.before[-1] - planned_ns

    def end(self) -> None:
        """The cheapest first, so that the work of the dear ones is not in it."""
        after, at = self.after, 2 * len(self.plan)
        for tally, _ in reversed(self.plan):
            at -= 2
            after[at], after[at + 1] = tally.timed_read()

    def changes(self) -> Iterator[tuple[Tally, int, int, int]]:
        """Tally, reason, change, and the peak above the start as far as it was seen."""
        for index, (tally, why) in enumerate(self.plan):
            now, highest = self.before[2 * index], self.before[2 * index + 1]
            then, top = self.after[2 * index], self.after[2 * index + 1]
            change = then - now
            peak = (top - now if top > highest else 0) if top else change
            yield tally, why, change, peak


class Watched:
    """A function whose lines are watched."""

    def __init__(self, code: CodeType, number: int) -> None:
        self.code = code
        self.number = number
        self.slot_of: dict[int, int] = {}
        """The slot of a line's statement."""
        self.line_of: dict[int, int] = {}
        """The first line of a slot's statement."""
        self.end_of: dict[int, int] = {}
        """And the last."""
        self.variables: dict[str, int] = {}
        """The slot of what a local variable gives back on return."""
        self.stored_at: dict[str, tuple[int, ...]] = {}
        """The slots of the lines that give the variable a value."""
        self.calls = 0
        self.returns = 0
        self.accounts: dict[str, Account] = {}
        """By gauge."""
        self.next_return_ns = 0
        """Before that moment no return is measured."""


class Call:
    """One activation: from entry or resumption to the next return, yield or exception."""

    __slots__ = (
        "account", "at_entry", "at_line", "inside", "n_inside", "n_inside_read",
        "slot", "watched",
    )  # fmt: skip

    def __init__(self, watched: Watched | None, slot: int = -1) -> None:
        self.watched = watched
        self.slot = slot
        self.at_line: Readings | None = None
        self.at_entry: Readings | None = None
        self.account: Opened | None = None
        """What was in use when it began, if it was called from outside."""
        self.inside: dict[str, int] | None = None
        """By gauge, what watched functions took that the line called."""
        self.n_inside = self.n_inside_read = 0
        """How many of those calls there were, and how many were measured."""
