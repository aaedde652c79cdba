"""One gauge's sums, slot by slot: a slot is a line, or a variable that gives back when its function
returns."""

from __future__ import annotations

from time import perf_counter_ns

from leakscope.observe.lines.gauges import Gauge

_ALWAYS_MEASURED = 3
"""Executions of each slot: the first may build what later ones use, so one is not enough."""
FIRST, LONG, DRAWN, NOT = range(4)
"""Why an execution is measured: among the first, long beside the reading, drawn by lot; or not."""

_SHARE = 0.015
"""Of the time, for the drawn readings of a gauge that is dear by itself."""
_CREDIT_NS = 500_000
_CREDIT_READINGS = 5
"""For the first executions of a function's lines, so that a short one gets its table: time, and for
each line the readings of two of them. From the first alone nothing is known about the others."""
_LONG_ENOUGH = 25
"""A line that takes so many times what measuring it takes is measured every time."""


class Tally:
    def __init__(self, gauge: Gauge) -> None:
        self.name = gauge.name
        self.read = gauge.read
        self.cost_ns = max(gauge.cost_ns, 100)
        self.is_paced = gauge.name != "heap"
        """The C heap is read whenever a line is measured at all; the ledger paces that."""
        self.credit_ns = 0
        self.next_ns = 0
        self.counts: list[list[int]] = [[], [], []]
        self.bytes: list[list[int]] = [[], [], []]
        self.later: list[int] = []
        """Of the FIRST executions, bytes of all but the very first."""
        self.inside: list[int] = []
        """Bytes that watched functions took which the line called; not in `bytes`."""
        self.peaks: list[int] = []
        self.is_long: list[bool] = []

    def add_slot(self) -> None:
        for column in (*self.counts, *self.bytes, self.later, self.inside, self.peaks):
            column.append(0)
        self.is_long.append(False)

    def reason(self, slot: int, now_ns: int) -> int:
        """Why this execution is to be measured; NOT if it is not."""
        if self.is_long[slot]:
            return LONG
        if self.wants_first(slot):
            self.credit_ns -= 2 * self.cost_ns
            return FIRST
        return DRAWN if now_ns >= self.next_ns else NOT

    def lend(self, n_lines: int) -> None:
        """Credit for one more function."""
        self.credit_ns += _CREDIT_NS + _CREDIT_READINGS * n_lines * self.cost_ns

    def wants_first(self, slot: int) -> bool:
        return self.counts[FIRST][slot] < _ALWAYS_MEASURED and (
            self.credit_ns > 0 or not self.is_paced
        )

    def add(self, slot: int, why: int, change: int, inside: int = 0, peak: int = 0) -> None:
        own = change - inside
        if why == FIRST and self.counts[FIRST][slot]:
            self.later[slot] += own
        self.counts[why][slot] += 1
        self.bytes[why][slot] += own
        self.inside[slot] += inside
        if peak > self.peaks[slot]:
            self.peaks[slot] = peak

    def timed_read(self) -> tuple[int, int]:
        """Read, and learn what it costs: malloc's counters get dearer as the heap is used."""
        began_ns = perf_counter_ns()
        level = self.read()
        # Bounded: a reading during which the process had to wait says nothing about its cost.
        self.cost_ns += (min(perf_counter_ns() - began_ns, 4 * self.cost_ns) - self.cost_ns) // 8
        return level

    def judge_length(self, slot: int, took_ns: float, measuring_ns: float) -> None:
        """`measuring_ns` is what measuring such a line has cost, whatever was read."""
        self.is_long[slot] = took_ns >= _LONG_ENOUGH * max(2 * self.cost_ns, measuring_ns)

    def pause(self, now_ns: int, lot: float) -> None:
        """After a drawn reading; `lot` is between 0 and 1."""
        if self.is_paced:
            self.next_ns = now_ns + round(2 * self.cost_ns / _SHARE * (0.5 + lot))

    def total(self, slot: int, turns: int) -> tuple[float, bool]:
        """Bytes of so many executions, and whether some of them are only estimated."""
        first, long, drawn = (self.counts[why][slot] for why in (FIRST, LONG, DRAWN))
        known = self.bytes[FIRST][slot] + self.bytes[LONG][slot]
        left = turns - first - long
        if left <= 0 or not first + long + drawn:
            return float(known + self.bytes[DRAWN][slot]), False
        if drawn:
            each = self.bytes[DRAWN][slot] / drawn
        elif first > 1:
            each = self.later[slot] / (first - 1)
        else:
            each = self.bytes[FIRST][slot] / max(first, 1)
        return known + each * left, left > drawn

    def estimated(self, slot: int, turns: int) -> float:
        """The part of the total that nobody measured."""
        n_bytes, is_estimate = self.total(slot, turns)
        return n_bytes - self.bytes[FIRST][slot] - self.bytes[LONG][slot] if is_estimate else 0.0

    def total_inside(self, slot: int, turns: int) -> float:
        measured = sum(column[slot] for column in self.counts)
        return self.inside[slot] / measured * turns if measured else 0.0

    def has_seen(self, slot: int) -> bool:
        return any(column[slot] for column in self.counts)
