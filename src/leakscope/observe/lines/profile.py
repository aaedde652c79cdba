"""Functions in, the figures of their lines out. Everything is put together here: where the events
come from, what is read, and which functions are watched."""

from __future__ import annotations

import sys
import threading
from types import CodeType, FunctionType

from leakscope.model import Gap, LineFigures
from leakscope.observe.lines.calls import Watched
from leakscope.observe.lines.gauges import open_gauges, why_no_device
from leakscope.observe.lines.ledger import Ledger
from leakscope.observe.lines.rows import rows_of
from leakscope.observe.lines.statements import statements_of

_HAS_MONITORING = hasattr(sys, "monitoring")


class Lines:
    """The watched functions of one table; each keeps its figures until the process ends."""

    def __init__(self) -> None:
        gauges, gaps = open_gauges()
        self._ledger = Ledger(gauges, gaps)
        self._code_before: dict[int, tuple[FunctionType, CodeType]] = {}
        self._by_code: dict[int, Watched] = {}
        self._gaps: dict[int, Gap] = {}
        if _HAS_MONITORING:
            from leakscope.observe.lines.monitoring import Monitoring

            self._monitoring = Monitoring(self._ledger)

    def watch(self, function: FunctionType) -> None:
        """Watch its lines from its next call on. Watching it twice is watching it once."""
        if self._find(function) is not None:
            return
        code = function.__code__
        if _HAS_MONITORING:
            why_not = self._monitoring.why_not()
            if why_not is not None:
                self._gaps[id(code)] = Gap(what=f"lines of {code.co_qualname}", why=why_not)
                return
        if _HAS_MONITORING:
            # A copy: functions made by the same `def` share their code, and are not watched.
            code = function.__code__ = code.replace()
        watched = self._ledger.add(code, statements_of(code))
        if _HAS_MONITORING:
            self._monitoring.watch(watched)
        else:
            from leakscope.observe.lines.marks import Marks, with_marks

            ledger = self._ledger
            marks = Marks(
                ledger.enter,
                ledger.counted_down,
                ledger.countdowns.of,
                ledger.leave,
                ledger.suspend,
                ledger.resume,
                ledger.unwind,
            )
            function.__code__ = with_marks(code, watched.number, watched.slot_of, marks)
            self._by_code[id(function.__code__)] = watched
        self._by_code[id(code)] = watched
        self._code_before[watched.number] = (function, code)

    def stop(self, function: FunctionType) -> None:
        """Its next calls run as if it had never been watched; the figures stay."""
        watched = self._find(function)
        if watched is None:
            return
        if _HAS_MONITORING:
            self._monitoring.stop(watched)
        else:
            function.__code__ = self._code_before[watched.number][1]

    def is_watching(self, function: FunctionType) -> bool:
        return self._find(function) is not None

    def figures(self, function: FunctionType) -> LineFigures:
        """What its lines took so far."""
        watched = self._find(function)
        if watched is not None:
            self._ledger.settle(watched)
        code = function.__code__
        gaps = [*self._ledger.gaps, *self._gaps.values()]
        no_device = why_no_device()
        if no_device is not None:
            gaps.append(Gap(what="device memory", why=no_device))
        if self._ledger.failure is not None:
            gaps.append(Gap(what="some lines", why=self._ledger.failure))
        if threading.active_count() > 1:
            why = "other threads run; what they take is counted at the line that runs meanwhile"
            gaps.append(Gap(what="one thread alone", why=why))
        return LineFigures(
            function=code.co_qualname,
            file=code.co_filename,
            first_line=code.co_firstlineno,
            calls=watched.calls if watched is not None else 0,
            rows=rows_of(self._ledger, watched, no_device is None) if watched is not None else (),
            gaps=tuple(gaps),
        )

    def _find(self, function: FunctionType) -> Watched | None:
        return self._by_code.get(id(function.__code__))
