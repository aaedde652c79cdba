"""Have something done by the main thread, between two of its instructions, as signal handlers are.

A look from a thread of ours holds objects while the program goes on: what the program drops in the
meantime outlives its references, and dies in the wrong thread, too late or out of order. In the
main thread, nothing of it moves while we look.
"""

from __future__ import annotations

import ctypes
import sys
from _thread import get_native_id
from collections.abc import Callable
from os import getpid
from time import monotonic_ns
from typing import Any


def is_main_thread() -> bool:
    return get_native_id() == getpid()


class MainThreadCall:
    """One at a time. Must live as long as the process: the interpreter has its bare address."""

    is_busy = False
    """Asked by the bootstrap: what is imported now is not the program starting up."""

    def __init__(self) -> None:
        self._call: Callable[[], object] | None = None
        self._is_queued = False
        self._sent_ns = 0
        self.is_under_way = False
        self.is_followed = False
        """A trace function would have followed the call, so it was not made."""

    @property
    def is_outstanding(self) -> bool:
        return self._call is not None or self.is_under_way

    def waited_ns(self) -> int:
        return monotonic_ns() - self._sent_ns if self._call is not None else 0

    def send(self, call: Callable[[], object]) -> None:
        self._call = call
        self._sent_ns = monotonic_ns()
        if not self._is_queued:
            self._is_queued = _add_pending_call()(_is_true(), id(self)) == 0

    def take_back(self) -> Callable[[], object] | None:
        call, self._call = self._call, None
        return call

    def cancel(self) -> None:
        self._call = None

    def forget(self) -> None:
        """In a forked child: nobody is under way any more."""
        self._call = None
        self.is_under_way = False

    def __bool__(self) -> bool:
        """Asked by `PyObject_IsTrue`: what is raised here (by the handler of a signal) is raised
        in the program, as it would have been."""
        self._is_queued = False
        call, self._call = self._call, None
        # A trace function would follow us, and unbind variables that we have read.
        is_followed = sys.gettrace() is not None or sys.getprofile() is not None
        self.is_followed |= call is not None and is_followed
        if call is not None and not is_followed:
            self.is_under_way = MainThreadCall.is_busy = True
            try:
                call()
            finally:
                self.is_under_way = MainThreadCall.is_busy = False
        return False


def _is_true() -> Any:
    return ctypes.cast(ctypes.pythonapi.PyObject_IsTrue, ctypes.c_void_p)


def _add_pending_call() -> Any:
    function = ctypes.pythonapi.Py_AddPendingCall
    function.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    return function
