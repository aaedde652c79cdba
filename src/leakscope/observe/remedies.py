"""What gives memory back at the end of a run: the remedy that works names the cause.

Only where memory rose and no holder was found for most of it, or where the allocator holds much
free, and only when the program is done: nothing of it is in anybody's way any more.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from time import monotonic_ns
from typing import NamedTuple

Counters = dict[str, int]

_FROZEN_BY_PYTHON = 1_000
"""Objects that Python itself may have frozen at its start."""


class Remedy(NamedTuple):
    """What was tried, and the counters before and after."""

    name: str
    took_ns: int
    before: Counters
    after: Counters


def try_remedies(
    read: Callable[[], Counters], *, is_puzzled: bool, is_much_held: bool
) -> list[Remedy]:
    """Each on top of the ones before."""
    tried = []
    if is_puzzled:
        if gc.get_freeze_count() > _FROZEN_BY_PYTHON:
            tried.append(_try("thaw", _thaw_and_collect, read))
        else:
            tried.append(_try("collection", gc.collect, read))
    if is_much_held and (trim := _trim()) is not None:
        tried.append(_try("trim", trim, read))
    return tried


def _try(name: str, act: Callable[[], object], read: Callable[[], Counters]) -> Remedy:
    before, began_ns = read(), monotonic_ns()
    act()
    return Remedy(name, monotonic_ns() - began_ns, before, read())


def _thaw_and_collect() -> None:
    gc.unfreeze()
    gc.collect()


def _trim() -> Callable[[], object] | None:
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return (lambda: malloc_trim(0)) if malloc_trim is not None else None
