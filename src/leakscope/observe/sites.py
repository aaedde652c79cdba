"""Which line made an object: a window of tracemalloc, a few steps long.

One window serves tensors too: a tensor's Python object is made where the operation returns, and
with 16 frames the program's own line is among them. A dispatch mode would see storages without a
Python object as well, but it changes what torch does (docs/decisions/0008).
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from functools import cache
from types import BuiltinFunctionType, CodeType, ModuleType
from typing import Any

from leakscope.model import Frame, SiteTally
from leakscope.observe import foreign
from leakscope.observe.anatomy import (
    attribute_of,
    class_module,
    class_name,
    is_exactly,
    is_of_the_user,
    module_dict,
    mro_of,
)

_FRAMES = 16
"""A module call is three frames per level: 16 reach through five levels of modules."""

_OUR_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MOST_SITES = 4
_MOST_ITEMS = 4
_NEAR_THE_ENDS = 64
_BEFORE_THE_OBJECT = (32, 16)
"""Where the memory of an object begins: before the collector's header and, for an instance, the
pointer to its attributes."""
_MOST_SEARCHED, _MOST_SEARCHED_FAR = 48, 160
_DEAD_ENDS = (ModuleType, type, CodeType, BuiltinFunctionType)


class SiteWindow:
    """Traces what Python allocates between `open` and `close`."""

    def __init__(self, in_use: Callable[[], int] = lambda: 0) -> None:
        self._in_use = in_use
        self.traced_bytes = 0
        """By how much `in_use` has changed in the last start or stop of the tracer."""
        self._is_open = False
        self._start = tracemalloc.start
        self._plain = self._tracing = b"", b""

    def open(self) -> None:
        self.traced_bytes = 0
        if not tracemalloc.is_tracing():
            raw, self._plain = _get(_RAW), _get_all()
            before = self._in_use()
            self._start(_FRAMES)
            self.traced_bytes = self._in_use() - before
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
        self.traced_bytes = 0
        if self._is_open:
            self._is_open = False
            tracemalloc.start = self._start
            before = self._in_use()
            tracemalloc.stop()
            self.traced_bytes = self._in_use() - before

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


def sites_of(items: list[Any]) -> tuple[SiteTally, ...]:
    """Where the payloads of these items were made, the most frequent place first."""
    stacks: Counter[tuple[Frame, ...]] = Counter()
    kinds: dict[int, bool] = {}
    for item in items[:_MOST_ITEMS]:
        stack = _line_of_record(item) or _site_of_payload(item, kinds)
        if stack:
            stacks[stack] += 1
    return tuple(SiteTally(stack, count) for stack, count in stacks.most_common(_MOST_SITES))


def traced_among(members: list[Any]) -> list[Any]:
    """Some that were made in the window: the collector lists its generations one after the other,
    so the youngest objects are near the beginning or at the end."""
    near_the_ends = [*members[:_NEAR_THE_ENDS], *members[-_NEAR_THE_ENDS:]]
    return [one for one in near_the_ends if _stack_of(one)][:_MOST_ITEMS]


def _line_of_record(item: Any) -> tuple[Frame, ...]:
    """A record of `logging` says which line logged it, also one from before the window; who keeps
    it is a library, so that this is the program's own statement."""
    kind = module_dict(sys.modules.get("logging")).get("LogRecord")
    if not isinstance(kind, type) or not issubclass(type(item), kind):
        return ()
    file, line, function = (attribute_of(item, name) for name in ("pathname", "lineno", "funcName"))
    if type(file) is not str or type(line) is not int:
        return ()
    return (Frame(file, line, function if type(function) is str else ""),)


def _site_of_payload(item: Any, kinds: dict[int, bool]) -> tuple[Frame, ...]:
    """The site of the first tensor or array the item leads to, or else of the item itself. Where a
    library made the item out of sight of the program's lines, of the first thing it leads to that
    one of those lines made."""
    own = _stack_of(item)
    is_far = bool(own) and foreign.is_present() and not _is_in_sight(own)
    most = _MOST_SEARCHED_FAR if is_far else _MOST_SEARCHED
    seen = {id(item)}
    level = [item]
    nearest: tuple[Frame, ...] = ()
    while level:
        for one in level:
            if _is_payload(type(one), kinds) and (stack := _stack_of(one)):
                return stack
            if is_far and not nearest and _is_in_sight(stack := _stack_of(one)):
                nearest = stack
        if len(seen) >= most:
            break
        below = gc.get_referents(*[one for one in level if not is_exactly(one, *_DEAD_ENDS)])
        level = [one for one in below if id(one) not in seen][: most - len(seen)]
        seen.update(map(id, level))
    return nearest or own


def _is_in_sight(stack: tuple[Frame, ...]) -> bool:
    """Is a line of the program among the frames?"""
    return any(is_of_the_user(frame.file) for frame in stack)


def _is_payload(kind: type, kinds: dict[int, bool]) -> bool:
    """By id: the hash of a class is the business of its metaclass."""
    known = kinds.get(id(kind))
    if known is None:
        bases = [(class_name(base), class_module(base)) for base in mro_of(kind)]
        known = kinds[id(kind)] = ("Tensor", "torch") in bases or ("ndarray", "numpy") in bases
    return known


def _stack_of(one: Any) -> tuple[Frame, ...]:
    """Innermost frame first, without ours."""
    traceback = tracemalloc.get_object_traceback(one)
    if traceback is not None:
        frames = [(frame.filename, frame.lineno) for frame in reversed(traceback)]
    else:
        frames = _look_up(id(one))
    return tuple(Frame(file, line) for file, line in frames if not file.startswith(_OUR_FOLDER))


def _look_up(address: int) -> list[tuple[str, int]]:
    """By address. On 3.11 `get_object_traceback` looks in the wrong place for an object of a class
    (16 bytes too high: it forgets the pointer to the attributes in front), tensors among them."""
    get = _getter()
    if get is not None:
        for before in _BEFORE_THE_OBJECT:
            if frames := get(0, address - before):
                return list(frames)
    return []


@cache
def _getter() -> Any:
    """What tracemalloc itself asks with: a look into its table, which reads no object."""
    try:
        get = ctypes.pythonapi._PyTraceMalloc_GetTraceback
    except AttributeError:
        return None
    get.restype = ctypes.py_object
    get.argtypes = [ctypes.c_uint, ctypes.c_size_t]
    return get
