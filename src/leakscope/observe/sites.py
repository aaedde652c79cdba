"""Which line made an object: a window of tracemalloc, a few steps long.

One window serves tensors too: a tensor's Python object is made where the operation returns, and
with 16 frames the program's own line is among them. A dispatch mode would see storages without a
Python object as well, but it changes what torch does (docs/decisions/0008).
"""

from __future__ import annotations

import gc
import os
import tracemalloc
from collections import Counter
from typing import Any

from leakscope.model import Frame, SiteTally

_FRAMES = 16
"""A module call is three frames per level: 16 reach through five levels of modules."""

_OUR_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MOST_SITES = 4
_MOST_SEARCHED = 64


class SiteWindow:
    """Traces what Python allocates between `open` and `close`."""

    def __init__(self) -> None:
        self._is_open = False

    def open(self) -> None:
        if not tracemalloc.is_tracing():
            tracemalloc.start(_FRAMES)
            self._is_open = True

    def close(self) -> None:
        """Stop tracing, unless the program itself had started it."""
        if self._is_open:
            self._is_open = False
            tracemalloc.stop()

    @property
    def is_open(self) -> bool:
        return self._is_open


def sites_of(items: list[Any]) -> tuple[SiteTally, ...]:
    """Where the payloads of these items were made, the most frequent place first."""
    stacks: Counter[tuple[Frame, ...]] = Counter()
    for item in items:
        stack = _site_of_payload(item)
        if stack:
            stacks[stack] += 1
    return tuple(SiteTally(stack, count) for stack, count in stacks.most_common(_MOST_SITES))


def _site_of_payload(item: Any) -> tuple[Frame, ...]:
    """The site of the first tensor or array the item leads to, or else of the item itself."""
    seen = {id(item)}
    level = [item]
    fallback: tuple[Frame, ...] = ()
    while level and len(seen) < _MOST_SEARCHED:
        for one in level:
            kind = type(one)
            is_payload = _is_payload(kind)
            if is_payload or not fallback:
                stack = _stack_of(one)
                if stack and is_payload:
                    return stack
                fallback = fallback or stack
        below = gc.get_referents(*[one for one in level if not _is_dead_end(type(one))])
        level = [one for one in below if id(one) not in seen][: _MOST_SEARCHED - len(seen)]
        seen.update(map(id, level))
    return fallback


def _is_payload(kind: type) -> bool:
    return any(
        base.__name__ in ("Tensor", "ndarray") and base.__module__ in ("torch", "numpy")
        for base in type.__dict__["__mro__"].__get__(kind)
    )


def _is_dead_end(kind: type) -> bool:
    return kind.__name__ in ("module", "type", "code", "builtin_function_or_method")


def _stack_of(one: Any) -> tuple[Frame, ...]:
    """Innermost frame first, without ours."""
    traceback = tracemalloc.get_object_traceback(one)
    if traceback is None:
        return ()
    frames = [
        Frame(frame.filename, frame.lineno)
        for frame in reversed(traceback)
        if not frame.filename.startswith(_OUR_FOLDER)
    ]
    return tuple(frames)
