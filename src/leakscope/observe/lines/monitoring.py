"""Events of `sys.monitoring` (Python 3.12 and newer), for the watched code objects only."""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any

from leakscope.observe.lines.calls import Watched
from leakscope.observe.lines.ledger import Ledger

_NAME = "leakscope lines"
_IDS = (4, 3, 5, 1, 2, 0)
"""Those that no kind of tool has by custom come first (debugger 0, coverage 1, profiler 2)."""


class Monitoring:
    """Turns the interpreter's events into those of a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
        self._tool: int | None = None
        # By address: the hash of a code object is made of all its constants, each time.
        self._watched: dict[int, Watched] = {}
        self._slots: dict[int, dict[int, int]] = {}
        self._parts: dict[int, list[int]] = {}
        """By slot of a statement whose first line is come to more than once in one execution: how
        often, and how often so far."""

    def why_not(self) -> str | None:
        """Take a tool's number if there is none yet; the reason if all are taken."""
        if self._tool is not None:
            return None
        for number in _IDS:
            try:
                self._monitoring.use_tool_id(number, _NAME)
            except ValueError:
                continue
            self._tool = number
            self._listen(number)
            return None
        taken = ", ".join(str(self._monitoring.get_tool(number)) for number in sorted(_IDS))
        return f"all six places of sys.monitoring are taken ({taken})"

    def watch(self, watched: Watched) -> None:
        code, event = watched.code, self._monitoring.events
        self._watched[id(code)] = watched
        # Lines within a statement are no events; its first line comes again after them.
        first_lines = {line: slot for slot, line in watched.line_of.items()}
        self._slots[id(code)] = first_lines
        for line, times in _times_begun(code, watched.slot_of).items():
            if times > 1 and line in first_lines:
                self._parts[first_lines[line]] = [times, 0]
        wanted = event.LINE | event.PY_START | event.PY_RETURN | event.PY_YIELD | event.PY_RESUME
        self._monitoring.set_local_events(self._tool, code, wanted)

    def stop(self, watched: Watched) -> None:
        """Running calls are closed as exceptions would close them: their lines say what they have
        so far."""
        self._monitoring.set_local_events(self._tool, watched.code, 0)
        self._watched.pop(id(watched.code), None)
        self._slots.pop(id(watched.code), None)
        if not self._watched:
            self._monitoring.free_tool_id(self._tool)
            self._tool = None

    def _listen(self, tool: int) -> None:
        monitoring, event = self._monitoring, self._monitoring.events
        for kind, callback in (
            (event.LINE, self._make_line()),
            (event.PY_START, self._start),
            (event.PY_RETURN, self._return),
            (event.PY_YIELD, self._yield),
            (event.PY_RESUME, self._resume),
            (event.PY_UNWIND, self._unwind),
        ):
            monitoring.register_callback(tool, kind, callback)
        # Only for all code at once: it costs a call for each function that an exception leaves.
        monitoring.set_events(tool, event.PY_UNWIND)

    def _make_line(self) -> Any:
        slots, parts, disable = self._slots, self._parts, self._monitoring.DISABLE
        # The ledger's own event, once more: a call less is a third of what a line costs.
        ledger = self._ledger
        counts, due, measuring, event = ledger.counts, ledger.due, ledger.measuring, ledger.line

        def line(code: CodeType, number: int) -> object:
            try:
                slot = slots[id(code)][number]
            except KeyError:
                return disable
            if slot in parts:
                part = parts[slot]
                part[1] += 1
                if part[1] % part[0] != 1:
                    return None
            n = counts[slot] + 1
            if n < due[slot] and not measuring[0]:
                counts[slot] = n
            else:
                event(slot)
            return None

        return line

    def _start(self, code: CodeType, offset: int) -> None:
        self._ledger.enter(self._watched[id(code)].number)

    def _return(self, code: CodeType, offset: int, value: object) -> None:
        self._ledger.leave(self._watched[id(code)].number, 3)

    def _yield(self, code: CodeType, offset: int, value: object) -> None:
        self._ledger.suspend(self._watched[id(code)].number)

    def _resume(self, code: CodeType, offset: int) -> None:
        line = sys._getframe(1).f_lineno
        slot = self._watched[id(code)].slot_of.get(line)
        if slot is not None:
            self._ledger.resume(slot)

    def _unwind(self, code: CodeType, offset: int, error: object) -> None:
        watched = self._watched.get(id(code))
        if watched is not None:
            self._ledger.unwind(watched.number)


def _times_begun(code: CodeType, slot_of: dict[int, int]) -> dict[int, int]:
    """How often each line is come to when its statement is executed once: a call whose arguments
    are on lines of their own ends on its first line."""
    times: dict[int, int] = {}
    line_before: int | None = None
    for *_, line in code.co_lines():
        if line is None or line == line_before:
            continue
        if line_before is not None and slot_of.get(line) == slot_of.get(line_before):
            times[line] = times.get(line, 1) + 1
        line_before = line
    return times
