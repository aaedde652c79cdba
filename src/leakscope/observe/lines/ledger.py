"""Events of lines in, bytes by line out.

A line is measured from its start to the start of the next one in the same call; what a call of
another watched function took meanwhile belongs to that function's lines. Not every execution is
measured: a reading has a cost, and all readings together may take only a share of the time. The
first executions of a line are measured, later ones if the line is long beside the reading, and
otherwise some, drawn by lot, from which the rest is estimated.

When a function returns, its variables give back what only they held. In some calls that is measured
variable by variable, so that a line is not said to keep what was gone when the call was over.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from random import Random
from time import perf_counter_ns
from types import CodeType

from leakscope.model import Gap
from leakscope.observe.lines.accounts import accounts_for, close_accounts, open_accounts
from leakscope.observe.lines.calls import Call, Readings, Watched
from leakscope.observe.lines.countdowns import Countdowns
from leakscope.observe.lines.gauges import Gauge
from leakscope.observe.lines.returns import give_back_each, gives_back, is_held_elsewhere
from leakscope.observe.lines.tally import DRAWN, NOT, Tally

_CALLS_READ = 16
"""Calls of watched functions by one line that are all measured; of later ones, those whose number
is a power of two. A line that makes thousands would otherwise be nothing but readings."""
_SMALLEST_GIVEN_BACK = 64
"""Bytes; a number or two of the ledger's own come and go between these readings."""
_SHARE_OF_LINES = 0.045
"""Of the time, for measuring executions that were drawn by lot, of all lines of a function."""
_SHARE_OF_RETURNS = 0.02
"""The same for its returns."""


class _Thread(threading.local):
    def __init__(self) -> None:
        self.calls = [Call(None)]


class Ledger:
    """What the lines of this process took; one for all its threads."""

    def __init__(self, gauges: list[Gauge], gaps: list[Gap]) -> None:
        self.gaps = gaps
        self.tallies = [Tally(gauge) for gauge in gauges]
        self.watched: list[Watched] = []
        self.counts: list[int] = []
        """Executions, by slot."""
        self.resumptions: list[int] = []
        self.failure: str | None = None
        self._adding: Watched | None = None
        self._took_ns: list[float] = []
        self.due: list[int] = []
        """By slot: the first execution, by number, that is looked at and perhaps measured."""
        self._seen: list[tuple[int, int]] = []
        """By slot: when it was looked at last, and how many executions there had been."""
        self.measuring = [0]
        """How many lines are being measured: the next line of such a call ends one."""
        self._owner: list[Watched | None] = []
        """By slot."""
        self._thread = _Thread()
        self._random = Random(8).random
        self._measuring_ns = 10_000.0
        """What measuring one line costs, on average."""
        self.countdowns = Countdowns()
        self._n_active = 0
        self._inside_ns = 0
        self._since_ns = 0
        """The clock of the watched functions: it stands while none of them is running."""
        self.line = self._make_line()

    # ── what is watched ──

    def add(self, code: CodeType, statements: dict[int, int]) -> Watched:
        """Watch the lines of a code object; `statements` has the first line of each line's."""
        watched = Watched(code, len(self.watched))
        lines = sorted({line for *_, line in code.co_lines() if line is not None})
        self._adding = watched
        watched.accounts = accounts_for(self.tallies)
        for tally in self.tallies:
            tally.lend(len(lines))
        for line in lines:
            first = statements.get(line, line)
            if first not in watched.slot_of:
                watched.slot_of[first] = self._new_slot()
                watched.line_of[watched.slot_of[first]] = first
            watched.slot_of[line] = watched.slot_of[first]
            watched.end_of[watched.slot_of[line]] = line
        for line, first in statements.items():
            slot = watched.slot_of.get(first)
            if slot is not None:
                watched.end_of[slot] = max(watched.end_of[slot], line)
        for name, stored in gives_back(code).items():
            slots = {watched.slot_of[line] for line in stored if line in watched.slot_of}
            watched.stored_at[name] = tuple(sorted(slots))
            watched.variables[name] = self._new_slot()
        self._adding = None
        self.watched.append(watched)
        return watched

    def _new_slot(self) -> int:
        for tally in self.tallies:
            tally.add_slot()
        self.counts.append(0)
        self.resumptions.append(0)
        self._took_ns.append(0.0)
        self.due.append(0)
        self._seen.append((0, 0))
        self._owner.append(self._adding)
        return len(self.counts) - 1

    # ── events: what the watched code calls; none of them raises ──

    def enter(self, number: int) -> None:
        try:
            watched = self.watched[number]
            watched.calls += 1
            self._opened(watched)
        except Exception as error:  # noqa: BLE001 - the watched program must not notice
            self._fail(error)

    def counted_down(self, slot: int) -> None:
        """The event of a line whose countdown is at its end."""
        try:
            self.counts[slot] += self.countdowns.take(slot)
            self.line(slot)
            wait = self.due[slot] - self.counts[slot] - 1
            if wait > 0 and not self.measuring[0]:
                self.countdowns.set(slot, wait)
        except Exception as error:  # noqa: BLE001 - the watched program must not notice
            self._fail(error)

    def settle(self, watched: Watched) -> None:
        """Count what the countdowns have counted; the function's next line is an event."""
        for slot in watched.line_of:
            self.counts[slot] += self.countdowns.take(slot)

    def _make_line(self) -> Callable[[int], None]:
        """The event of every line: a closure, for it must cost little."""
        counts, due, measuring, turn, fail = (
            self.counts, self.due, self.measuring, self._turn, self._fail,
        )  # fmt: skip

        def line(slot: int) -> None:
            counts[slot] = n = counts[slot] + 1
            if n < due[slot] and not measuring[0]:
                return
            try:
                turn(slot, n)
            except Exception as error:  # noqa: BLE001 - the watched program must not notice
                fail(error)

        return line

    def leave(self, number: int, depth: int = 2) -> None:
        """The function is about to return; it is so many frames below `_measure_return`."""
        try:
            watched = self.watched[number]
            watched.returns += 1
            calls = self._thread.calls
            call = calls[-1]
            now_ns = perf_counter_ns()
            is_due = self._clock(now_ns) >= watched.next_return_ns
            is_measured = call.at_line is not None or call.at_entry is not None
            if call.watched is watched and not ((is_due and watched.variables) or is_measured):
                self._ended(call, 1, now_ns)
                calls.pop()
                return
            index = self._innermost(number)
            if not index:
                return
            call = calls[index]
            if call.at_line is not None:
                self._end_line(call, now_ns)
            given_back = None
            if watched.variables:
                given_back = self._measure_return(call, watched, now_ns, depth)
            self._close(index, given_back)
        except Exception as error:  # noqa: BLE001 - the watched program must not notice
            self._fail(error)

    def suspend(self, number: int) -> None:
        """It yields, or an exception leaves it: its variables live on."""
        try:
            index = self._innermost(number)
            if index:
                call = self._thread.calls[index]
                if call.at_line is not None:
                    self._end_line(call, perf_counter_ns())
                self._close(index)
        except Exception as error:  # noqa: BLE001 - the watched program must not notice
            self._fail(error)

    unwind = suspend

    def resume(self, slot: int) -> None:
        """It goes on after a yield, in the middle of a line."""
        try:
            self.resumptions[slot] += 1
            self._opened_for(slot)
            self._turn(slot, self.counts[slot])
        except Exception as error:  # noqa: BLE001 - the watched program must not notice
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.failure = f"{type(error).__name__}: {error}"

    # ── one call ──

    def _opened(self, watched: Watched) -> Call:
        calls = self._thread.calls
        call = Call(watched)
        caller = calls[-1]
        calls.append(call)
        if not self._n_active:
            self._since_ns = perf_counter_ns()
            call.account = open_accounts(watched.accounts, self.tallies, self._inside_ns)
        elif watched.accounts and any(one.watched is watched for one in calls[:-1]):
            watched.accounts = {}  # it calls itself: its lines are inside its lines
        self._n_active += 1
        if caller.at_line is not None:
            caller.n_inside += 1
            if caller.n_inside <= _CALLS_READ or not caller.n_inside & (caller.n_inside - 1):
                call.at_entry = Readings(caller.at_line.plan)
                call.at_entry.begin()
        return call

    def _opened_for(self, slot: int) -> Call:
        watched = self._owner[slot]
        assert watched is not None
        return self._opened(watched)

    def _innermost(self, number: int) -> int:
        """Where the innermost call of the function is; 0 if there is none."""
        calls = self._thread.calls
        index = len(calls) - 1
        while index:
            watched = calls[index].watched
            if watched is not None and watched.number == number:
                break
            index -= 1
        return index

    def _close(self, index: int, given_back: dict[str, int] | None = None) -> None:
        """Tell the caller's line what of its change is not its own. Calls further in have ended
        unseen."""
        calls = self._thread.calls
        caller, at_entry = calls[index - 1], calls[index].at_entry
        if at_entry is not None and caller.at_line is not None:
            if given_back is None:
                at_entry.end()
            caller.n_inside_read += 1
            inside = caller.inside = caller.inside or {}
            freed = given_back or {}
            for tally, _, change, _ in at_entry.changes():
                name = tally.name
                inside[name] = inside.get(name, 0) + change + freed.get(name, 0)
        for call in calls[index:]:
            if call.at_line is not None:
                self.measuring[0] -= 1
        self._ended(calls[index], len(calls) - index, perf_counter_ns(), given_back)
        del calls[index:]

    def _ended(
        self, call: Call, n_calls: int, now_ns: int, given_back: dict[str, int] | None = None
    ) -> None:
        if call.account is not None:
            close_accounts(call.account, given_back or {})
        self._n_active -= n_calls
        if not self._n_active:
            self._inside_ns += now_ns - self._since_ns

    def _clock(self, now_ns: int) -> int:
        return self._inside_ns + now_ns - self._since_ns if self._n_active else self._inside_ns

    # ── one line ──

    def _turn(self, slot: int, n: int) -> None:
        """The line that runs may end, and another, for the n-th time, may be measured."""
        now_ns = perf_counter_ns()
        call = self._thread.calls[-1]
        if call.watched is not self._owner[slot]:
            call = self._opened_for(slot)  # resumed by an exception thrown into it: no event
        if call.at_line is not None:
            if call.slot == slot:
                return  # the statement goes on in its first line
            self._end_line(call, now_ns)
        if n < self.due[slot]:
            return
        plan = self._plan(slot, self._clock(now_ns))
        self._set_due(slot, n, self._clock(now_ns))
        if plan:
            call.slot = slot
            self.measuring[0] += 1
            if call.watched is not None:
                self.settle(call.watched)
            call.at_line = Readings(plan)
            call.at_line.begin()
            call.at_line.note_times(now_ns)

    def _set_due(self, slot: int, n: int, now_ns: int) -> None:
        """The next execution to look at: the very next while lines are new or long; otherwise
        one so far away that looking at it takes its share of the time."""
        is_wanted = False
        for tally in self.tallies:
            is_wanted = is_wanted or tally.is_long[slot] or tally.wants_first(slot)
        if is_wanted:
            self.due[slot] = 0
            return
        seen_ns, before = self._seen[slot]
        # Numbers of our own: those of the caller would outlive this line's first reading.
        self._seen[slot] = (now_ns + 1, n + 0)
        each_ns = max((now_ns - seen_ns) / max(n - before, 1), 20.0)
        watched = self._owner[slot]
        n_lines = len(watched.line_of) if watched is not None else 1
        wanted_ns = self._measuring_ns / _SHARE_OF_LINES * n_lines
        self.due[slot] = n + max(1, round(wanted_ns / each_ns * (0.5 + self._random())))

    def _plan(self, slot: int, now_ns: int) -> list[tuple[Tally, int]]:
        # Not a comprehension: on 3.11 its variables would be cells, which are small objects too.
        plan = []
        for tally in self.tallies:
            why = tally.reason(slot, now_ns)
            if why != NOT:
                plan.append((tally, why))
        return plan

    def _end_line(self, call: Call, now_ns: int) -> None:
        readings, slot = call.at_line, call.slot
        assert readings is not None
        readings.end()
        self.measuring[0] -= 1
        inside, calls_each = call.inside or {}, call.n_inside / (call.n_inside_read or 1)
        n_calls = call.n_inside_read
        call.at_line = call.inside = None
        call.n_inside = call.n_inside_read = 0
        took_ns = now_ns - readings.before[-1]
        usual_ns = self._took_ns[slot]
        usual_ns = self._took_ns[slot] = (3 * usual_ns + took_ns) / 4 if usual_ns else took_ns
        for tally, why, change, peak in readings.changes():
            tally.add(slot, why, change, round(inside.get(tally.name, 0) * calls_each), peak)
            if why == DRAWN:
                tally.pause(self._clock(now_ns), self._random())
        for tally in self.tallies:
            tally.judge_length(slot, usual_ns, self._measuring_ns * (1 + n_calls))
            if tally.is_long[slot]:
                self.due[slot] = 0
        took_ns = perf_counter_ns() - now_ns + readings.after[-1]
        # Bounded, for the process may have had to wait meanwhile.
        self._measuring_ns += (min(took_ns, 4 * self._measuring_ns) - self._measuring_ns) / 8

    # ── one return ──

    def _measure_return(
        self, call: Call, watched: Watched, now_ns: int, depth: int
    ) -> dict[str, int] | None:
        """Drop the variables one by one: for their own sake, or because the line that called is
        being measured, and they are not its business. By gauge, what they gave back."""
        some = next(iter(watched.variables.values()))
        clock_ns = self._clock(now_ns)
        plan = self._plan(some, clock_ns) if clock_ns >= watched.next_return_ns else []
        if call.at_entry is not None:
            call.at_entry.end()  # before there is a frame object, which outlives the call
            planned = dict(plan)
            plan = [(tally, planned.get(tally, NOT)) for tally, _ in call.at_entry.plan]
        if not plan:
            return None
        given_back = {tally.name: 0 for tally, _ in plan}
        frame = sys._getframe(depth)
        if is_held_elsewhere(frame):
            return given_back
        readings = Readings(plan)
        dropped = give_back_each(frame, watched.variables)
        next(dropped)  # makes what it needs before anything is read
        readings.begin()
        for name in dropped:
            readings.end()
            for tally, why, seen, _ in readings.changes():
                change = seen if abs(seen) >= _SMALLEST_GIVEN_BACK else 0
                given_back[tally.name] += change
                if why != NOT:
                    tally.add(watched.variables[name], why, change)
            readings.begin()
        for tally, why in plan:
            if why == DRAWN:
                tally.pause(clock_ns, self._random())
        pause_ns = (perf_counter_ns() - now_ns) / _SHARE_OF_RETURNS * (0.5 + self._random())
        watched.next_return_ns = clock_ns + round(pause_ns)
        return given_back
