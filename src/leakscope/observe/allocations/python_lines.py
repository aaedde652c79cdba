"""Which line made an object: a window of tracemalloc, a few steps long.

One window serves tensors too: a tensor's Python object is made where the operation returns, and
with 16 frames the program's own line is among them. The heap snapshot at its end asks for every
object that was made in it.
"""

from __future__ import annotations

import ctypes
import tracemalloc
from typing import Any

_FRAMES = 16
"""A module call is three frames per level: 16 reach through five levels of modules."""


class SiteWindow:
    """Traces what Python allocates between `open` and `close`."""

    def __init__(self) -> None:
        self._is_open = False
        self._start = tracemalloc.start
        self._plain = self._tracing = b"", b""

    def open(self) -> None:
        if not tracemalloc.is_tracing():
            raw, self._plain = _get(_RAW), _get_all()
            self._start(_FRAMES)
            _set(_RAW, raw)
            self._tracing = _get_all()
            self._is_open = True
            # The program's own call would find tracing on, and ours would end it later.
            tracemalloc.start = self._start_for_the_program

    def pause(self) -> None:
        """Trace nothing more, and keep what has been traced: a look makes a hundred thousand small
        objects of its own, and traced they cost eight times as much (0.55 s for a list of 350,000
        objects, 0.07 s without). Only if nobody has put functions of his own there meanwhile."""
        if self._is_open and _get_all() == self._tracing:
            for domain, functions in zip(_OF_OBJECTS, self._plain, strict=True):
                _set(domain, functions)

    def close(self) -> None:
        """Stop tracing, unless the program itself has started it."""
        if self._is_open:
            self._is_open = False
            tracemalloc.start = self._start
            tracemalloc.stop()

    def _start_for_the_program(self, nframe: int = 1) -> None:
        """Our window gives way."""
        self.close()
        self._start(nframe)

    @property
    def is_open(self) -> bool:
        return self._is_open


_RAW, *_OF_OBJECTS = range(3)
"""Domains of Python's allocator. The raw functions are put back under tracemalloc's at once: they
may be called without the interpreter lock (numpy's buffers in a loop), and tracemalloc's take it. A
thread that waits there while another calls `tracemalloc.stop()` dies of a signal 11 (gh-128679, up
to Python 3.12.8 and 3.13.1; seen in 5 of 52 runs with numpy and threads, with this in none of 105),
and one that holds a lock of its own may wait for ever (gh-155725). No object of Python is made by
them, so nothing is missed."""


_Functions = ctypes.c_void_p * 5
"""PyMemAllocatorEx: a context and four functions."""


def _get(domain: int) -> bytes:
    """As bytes: an object of ours that the collector tracks would be found by the look."""
    functions = _Functions()
    _call("PyMem_GetAllocator", domain, functions)
    return bytes(functions)


def _get_all() -> tuple[bytes, bytes]:
    memory, objects = map(_get, _OF_OBJECTS)
    return memory, objects


def _set(domain: int, functions: bytes) -> None:
    _call("PyMem_SetAllocator", domain, _Functions.from_buffer_copy(functions))


def _call(name: str, domain: int, functions: Any) -> None:
    # As an attribute it is made once; ctypes leaves each in a cycle, garbage of ours.
    function = getattr(ctypes.pythonapi, name)
    function.restype = None
    function(ctypes.c_int(domain), ctypes.byref(functions))
