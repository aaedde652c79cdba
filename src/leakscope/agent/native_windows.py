"""Windows in which memray counts native memory, opened and closed by the schedule."""

from __future__ import annotations

import os
from time import thread_time_ns
from typing import TYPE_CHECKING

from leakscope.model import Moment, Window
from leakscope.record.writer import Writer

if TYPE_CHECKING:
    from leakscope.observe.allocations.native_lines import NativeWindow

_MOST_SITES = 16


class NativeWindows:
    """The native windows of one process. memray is imported when the first one opens."""

    def __init__(self) -> None:
        self._window: NativeWindow | None = None
        self._step = 0

    @property
    def is_open(self) -> bool:
        return self._window is not None and self._window.is_open

    def open(self, step: int, writer: Writer) -> int:
        """Open one. Returns the cost of importing memray, which the next one will not have."""
        self._step = step
        once_ns = 0
        if self._window is None:
            began_cpu_ns = thread_time_ns()
            from leakscope.observe.allocations.native_lines import NativeWindow

            self._window = NativeWindow(os.path.dirname(writer.path), writer.append)
            self._window.prepare()
            once_ns = thread_time_ns() - began_cpu_ns
        self._window.open()
        return once_ns

    def begin_at(self, step: int) -> None:
        """The window began at this step: without steps, time has passed while it was opened."""
        self._step = step

    def close(self, step: int, at: Moment, process: str) -> Window | None:
        """What it saw; None where a fork ended it, or it could not be opened."""
        sites = self._window.close() if self._window is not None else ()
        return (
            Window(at, process, "memray", step - self._step, sites[:_MOST_SITES]) if sites else None
        )

    def abandon(self) -> None:
        if self._window is not None:
            self._window.close()
