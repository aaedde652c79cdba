"""The last rung: windows in which memray counts native memory, opened and closed by the looks."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import thread_time_ns
from typing import TYPE_CHECKING

from leakscope.model import Moment, Window
from leakscope.record.writer import Writer

if TYPE_CHECKING:
    from leakscope.observe.inquiry import Inquiry
    from leakscope.observe.native_sites import NativeWindow

_MOST_SITES = 16


class NativeRung:
    """The native windows of one process. memray is imported when the first one opens."""

    def __init__(self) -> None:
        self._window: NativeWindow | None = None
        self._step = 0

    @property
    def is_open(self) -> bool:
        return self._window is not None and self._window.is_open

    def open(
        self, inquiry: Inquiry, step: int, writer: Writer, when_prepared: Callable[[], None]
    ) -> int:
        """Returns what of its cost the next one will not have: importing memray, and noting anew
        what that has filled. `when_prepared` is called after that, the first time."""
        self._step = step
        once_ns = 0
        if self._window is None:
            began_cpu_ns = thread_time_ns()
            from leakscope.observe.native_sites import NativeWindow

            self._window = NativeWindow(os.path.dirname(writer.path), writer.append)
            self._window.prepare()
            inquiry.begin_native(step)
            when_prepared()
            once_ns = thread_time_ns() - began_cpu_ns
        self._window.open()
        return once_ns

    def close(self, inquiry: Inquiry, step: int, at: Moment, process: str) -> Window | None:
        """What it saw; None where that is nothing, or held by Python after all."""
        sites = self._window.close() if self._window is not None else ()
        steps = step - self._step
        if not sites:
            return None  # a fork ended it, or it could not be opened: the gap has been told
        if inquiry.is_held_after_all(step, sum(one.bytes for one in sites), steps):
            return None
        return Window(at, process, "memray", steps, sites[:_MOST_SITES])

    def abandon(self) -> None:
        if self._window is not None:
            self._window.close()
