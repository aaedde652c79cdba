"""A clock inside the program, for programs without steps: a thread that is hardly there.

`threading` does not know it, nothing waits for it, it takes no signal, and it is gone, as far as
the kernel counts threads, whenever the program forks: with a second thread `fork` warns on Python
3.12 and newer. What was measured is in docs/decisions/0007-a-thread-where-nothing-steps.md.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from _thread import LockType, allocate_lock, get_ident, get_native_id, start_new_thread
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, sleep
from types import FrameType
from typing import Any

FIRST_S = 0.005
SLOWEST_S = 0.5
_STRETCH = 1.05
"""Pauses: 0.1 s have 14 ticks, 0.3 s have 28, a second has 49, from 10 s on it is two a second."""

TICK_NS = 10_000_000
"""Ticks are numbered in hundredths of a second, whenever they come: a clock, and no step that the
user knows. judge/axis.py reads them so."""

HURRY_S = 0.05
"""While a window of ours is open: tracing makes the program slower, so it must not stay open for
half a second."""

CHILD_S = 0.15
"""A forked child may be over at once; it ticks if it lives on."""

_PATIENCE_S = 1.0
"""How long a fork or the end of the program waits for a tick that is under way. One without a look
at the heap takes 0.1 ms, and up to 15 ms where the program keeps the interpreter lock."""

_POLL_S = 5e-5

_FOREIGN_THREADS = ("gevent", "eventlet")
"""They replace the functions of `_thread`: what looks like a thread would run in the program's."""


class Ticker:
    """Calls `on_tick` from a thread of its own until that answers False, or `stop`.

    `on_tick` must not raise, and must not use `threading`, which would enter the thread in its
    list of threads.
    """

    def __init__(
        self, on_tick: Callable[[], bool], *, first_s: float = FIRST_S, slowest_s: float = SLOWEST_S
    ) -> None:
        self._on_tick = on_tick
        self._pause_s = first_s
        self._slowest_s = slowest_s
        self._wake: LockType | None = None
        self._done: LockType = allocate_lock()
        self._task = 0
        self._due_s = 0.0
        self.is_urgent = False
        """Set by `on_tick`: the next tick is to come soon, whatever the pace."""
        self._loaded_s = -_PATIENCE_S
        """When a tick last imported something."""
        self._is_over = False
        """`on_tick` has answered False."""
        self._is_cut_short = False
        """A fork has ended the thread, and it is to come back."""

    @property
    def is_running(self) -> bool:
        return self._wake is not None and not self._is_over

    def start(self, after_s: float = 0.0) -> bool:
        """False where no thread can be had. The first tick comes after so long."""
        if self._wake is not None or any(name in sys.modules for name in _FOREIGN_THREADS):
            return False
        _follow_forks()
        wake, done = allocate_lock(), allocate_lock()
        wake.acquire()
        done.acquire()
        # The thread inherits the mask: with an open one it would take signals that the program
        # blocks everywhere in order to wait for them. Asked first: the call that blocks may raise
        # what the handler of a signal raises, when it has blocked.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
            start_new_thread(self._run, (wake, done, after_s))
        except RuntimeError:  # a limit on threads, or the interpreter is on its way out
            return False
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self._wake, self._done = wake, done
        _tickers.append(self)
        return True

    def stop(self) -> None:
        """For good. Waits for a tick that is under way, but not for ever."""
        if self._wake is not None and get_native_id() != self._task:
            self._wake.release()
            self._done.acquire(True, _PATIENCE_S)
        if monotonic() - self._loaded_s < _PATIENCE_S:
            keep_interrupt()
        self._forget()

    def _forget(self) -> None:
        self._wake = None
        self._is_over = self._is_cut_short = False
        if self in _tickers:
            _tickers.remove(self)

    def _run(self, wake: LockType, done: LockType, after_s: float) -> None:
        self._task = get_native_id()
        try:
            self._due_s = monotonic() + after_s
            # True: somebody wants the thread to end.
            while not wake.acquire(True, max(self._due_s - monotonic(), 0.0)):
                modules = len(sys.modules)
                is_wanted = _without_collections(self._on_tick)
                if len(sys.modules) != modules:
                    self._loaded_s = monotonic()
                if not is_wanted:
                    self._is_over = True
                    break
                pause_s = min(self._pause_s, HURRY_S) if self.is_urgent else self._pause_s
                self._due_s = monotonic() + pause_s
                self._pause_s = min(self._pause_s * _STRETCH, self._slowest_s)
        finally:
            done.release()

    # ── forks ──

    def leave_for_fork(self) -> None:
        """End the thread, and wait until the kernel does not count it any more."""
        if self._wake is None or get_native_id() == self._task:
            return
        deadline = monotonic() + _PATIENCE_S
        self._wake.release()
        if self._done.acquire(True, _PATIENCE_S):
            while os.path.exists(f"/proc/self/task/{self._task}") and monotonic() < deadline:
                sleep(_POLL_S)
        self._wake = None
        self._is_cut_short = not self._is_over

    def note_lost(self) -> None:
        """In a child. A ticker that was started while the hooks before the fork were running has
        not been told to leave, and its thread is not here all the same."""
        self._is_cut_short = self._is_cut_short or (self._wake is not None and not self._is_over)

    def come_back(self, after_s: float | None = None) -> None:
        """In the parent or the child of a fork, if the fork is why it ended. Without a time the
        next tick is when it would have been."""
        is_wanted = self._is_cut_short
        self._forget()
        if is_wanted:
            self.start(max(self._due_s - monotonic(), 0.0) if after_s is None else after_s)


def _without_collections(on_tick: Callable[[], bool]) -> bool:
    """A collection that began in this thread would run the program's finalisers in it: sqlite
    refuses that, tkinter ends the program. It can wait for the program's next object."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return on_tick()
    finally:
        if was_on:
            gc.enable()


_tickers: list[Ticker] = []
_follows_forks = False


def _follow_forks() -> None:
    """Once per process: what is registered here cannot be taken back."""
    global _follows_forks
    if not _follows_forks:
        os.register_at_fork(
            before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child
        )
        _follows_forks = True


_return: _Return | None = None


def _before_fork() -> None:
    global _return
    _return = _Return(sys._getframe(1)) if _tickers else None
    for ticker in tuple(_tickers):
        ticker.leave_for_fork()


def _after_in_parent() -> None:
    if _return is None:
        return
    if sys.version_info < (3, 12):
        _come_back()
    else:
        _return.schedule()


def _after_in_child() -> None:
    global _return
    _return = None
    for ticker in _tickers:
        ticker.note_lost()
    _come_back(CHILD_S)


def _come_back(after_s: float | None = None) -> None:
    for ticker in tuple(_tickers):
        ticker.come_back(after_s)


class _Return:
    """Starts the tickers again once `fork` has returned, not when its hooks run.

    Python 3.13 counts the threads after the hooks of the parent. So the main thread is asked to
    call us between two of its instructions, and asked again while the frame that forks is still
    at the call and something runs on top of it (the hooks of others: `logging` has some).
    """

    _MOST_CALLS = 10_000

    def __init__(self, forking: FrameType | None) -> None:
        self._forking = forking
        self._at = forking.f_lasti if forking is not None else -1
        self._thread = get_ident()
        self._calls = 0

    def schedule(self) -> None:
        _add_pending_call()(_pending, None)

    def called(self) -> None:
        self._calls += 1
        if self._is_forking() and self._calls < self._MOST_CALLS:
            self.schedule()
            return
        self._forking = None
        _come_back()

    def _is_forking(self) -> bool:
        frame = sys._current_frames().get(self._thread)
        while frame is not None and frame.f_code in _OUR_CODE:
            frame = frame.f_back
        if frame is self._forking:
            return False
        while frame is not None and frame is not self._forking:
            frame = frame.f_back
        return frame is not None and frame.f_lasti == self._at


_PendingCall: Any = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


def _call_return(_: object) -> int:
    global _return
    try:
        if _return is not None:
            _return.called()
            if _return._forking is None:
                _return = None
    except BaseException:  # noqa: BLE001 - ctypes would print it
        _return = None
    return 0


_pending: Any = _PendingCall(_call_return)
_OUR_CODE = {
    _call_return.__code__,
    _Return.called.__code__,
    _Return._is_forking.__code__,
}


def _add_pending_call() -> Any:
    function = ctypes.pythonapi["Py_AddPendingCall"]
    function.argtypes = (_PendingCall, ctypes.c_void_p)
    return function


def keep_interrupt() -> None:
    """At exit, after code was loaded in our thread: see `_keep_interrupt` of the bootstrap."""
    if getattr(sys, "last_type", None) is KeyboardInterrupt and not hasattr(sys, "ps1"):
        with suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")


def import_threading(main_thread: int) -> None:
    """Import `threading` here, and let it know which thread is the main one.

    It takes the thread that imports it first for that (up to Python 3.12), and then everything
    that asks whether it runs in the main thread is told no, in a program that imports it later.
    Our looks at the heap need it, and plain programs, numpy too, do not import it.
    """
    if "threading" in sys.modules:
        return
    import threading

    internals: Any = threading
    main = internals._main_thread
    main._native_id = os.getpid()
    if main._ident == main_thread:
        return
    with internals._active_limbo_lock:
        internals._active.pop(main._ident, None)
        main._ident = main_thread
        internals._active[main_thread] = main
    # The lock it has is that of this thread, and comes free when this thread ends.
    with internals._shutdown_locks_lock:
        internals._shutdown_locks.discard(main._tstate_lock)
        main._tstate_lock = allocate_lock()
        main._tstate_lock.acquire()
        internals._shutdown_locks.add(main._tstate_lock)
