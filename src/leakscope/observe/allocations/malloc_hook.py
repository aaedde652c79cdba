"""malloc through ctypes, which memray does not see: a detour for as long as a window is open."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

_ROUTES = {"malloc": "PyMem_RawMalloc", "calloc": "PyMem_RawCalloc", "free": "PyMem_RawFree"}
"""Python's raw functions take and give the same as these, need no interpreter lock, and call them
through Python's own symbol table, where memray stands."""


class Detours:
    """ctypes keeps the address of a function it has looked up, past every symbol table. While a
    window is open, addresses of malloc and its kin are those of Python's functions that call them.

    Without this neither line nor bytes of `libc.malloc(n)` are seen: five calls by ctypes made
    while memray tracked gave no record, and strdup, which calls malloc inside libc, gave one.
    """

    def __init__(self) -> None:
        self._cells: list[tuple[Any, Any, int]] = []

    def set_up(self) -> None:
        routes, realloc = _find_routes()
        found = [(function, _cell(function)) for function in _ctypes_functions()] if routes else []
        # realloc(p, 0) frees and PyMem_RawRealloc(p, 0) does not, so it has no detour; and without
        # one, what was made by malloc and moved by realloc would look as if it stayed.
        if any(cell.value == realloc for _, cell in found):
            return
        for function, cell in found:
            original = cell.value
            if original is not None and original in routes:
                self._cells.append((function, cell, original))
                cell.value = routes[original]

    def take_back(self) -> None:
        for _, cell, original in self._cells:
            cell.value = original
        self._cells.clear()


@cache
def _find_routes() -> tuple[dict[int, int], int | None]:
    """Addresses of the C functions, with those of Python's that stand in for them, and that of
    realloc. No routes where Python gives out other memory than malloc does."""
    # Not `process.realloc`: a function looked up by us would be found as one of the program's.
    look_up: Callable[[int, str], int] = sys.modules["_ctypes"].dlsym
    process = ctypes.PyDLL(None)
    if not _is_malloc_raw(process):
        return {}, None
    handle = process._handle
    routes = {look_up(handle, c): look_up(handle, python) for c, python in _ROUTES.items()}
    return routes, look_up(handle, "realloc")


def _is_malloc_raw(process: ctypes.PyDLL) -> bool:
    """Asks the allocator itself for the size of a block that Python's function gave out."""
    if sys.flags.dev_mode or "debug" in os.environ.get("PYTHONMALLOC", ""):
        return False  # Python's debug hooks put a header in front of what malloc gave
    process.malloc_usable_size.restype = ctypes.c_size_t
    process.PyMem_RawMalloc.restype = ctypes.c_void_p
    block = ctypes.c_void_p(process.PyMem_RawMalloc(ctypes.c_size_t(1000)))
    try:
        return bool(1000 <= process.malloc_usable_size(block) <= 1100)
    finally:
        process.PyMem_RawFree(block)


def _ctypes_functions() -> list[Any]:
    """Every function that ctypes has looked up and that is still alive: 10 ms for a million
    objects. Each library has a class of its own for them."""
    base: Any = vars(ctypes)["_CFuncPtr"]
    referrers = gc.get_referrers(*base.__subclasses__())
    return [one for one in referrers if issubclass(type(one), base)]


def _cell(function: Any) -> ctypes.c_void_p:
    """Where a ctypes function keeps its address; does not keep the function alive."""
    return ctypes.c_void_p.from_address(ctypes.addressof(function))
