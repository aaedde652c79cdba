"""The large things that modules of the program hold by name, as a census of a child process.

A spawned process runs the program's modules anew, and with them whatever they build: each has a
copy of its own. What that costs shows only when the copies are counted by name.
"""

from __future__ import annotations

import sys
from typing import Any

from leakscope.model import Tally
from leakscope.observe.anatomy import class_name, is_exactly, is_of_the_user, module_dict

_LARGE = 1 << 20
_MOST_TOLD = 16
_MOST_NAMES = 2_000
_SAMPLED = 64
_BUFFERS = (bytes, bytearray, str)
_CONTAINERS = (list, tuple, dict, set)


def large_globals() -> tuple[Tally, ...]:
    """From 1 MiB on, the largest first; `role` is the name, with the file of its module."""
    found: list[Tally] = []
    for module in list(sys.modules.values()):
        names = module_dict(module)
        file = names.get("__file__")
        if type(file) is not str or not is_of_the_user(file):
            continue
        for name, value in list(names.items())[:_MOST_NAMES]:
            if type(name) is str and not name.startswith("__"):
                size = _size_of(value)
                if size >= _LARGE:
                    found.append(Tally(class_name(type(value)), f"{file}:{name}", 1, size))
    # A module that was imported under two names (`__main__`, `__mp_main__`) is one.
    once = {tally.role: tally for tally in found}
    return tuple(sorted(once.values(), key=lambda tally: -tally.bytes)[:_MOST_TOLD])


def _size_of(value: Any) -> int:
    array = getattr(sys.modules.get("numpy"), "ndarray", None)
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    if array is not None and type(value) is array:
        return int(value.nbytes)
    if tensor is not None and type(value) is tensor:
        return int(value.element_size() * value.numel())
    if is_exactly(value, *_BUFFERS):
        return sys.getsizeof(value)
    if is_exactly(value, *_CONTAINERS):
        # The first few stand for all: what they refer to in turn is not followed.
        parts = value.values() if type(value) is dict else value
        sample = [part for part, _ in zip(parts, range(_SAMPLED), strict=False)]
        each = sum(map(_flat_size, sample)) / len(sample) if sample else 0
        return int(sys.getsizeof(value) + each * len(value))
    return 0


def _flat_size(value: Any) -> int:
    known = (*_BUFFERS, *_CONTAINERS, int, float)
    return sys.getsizeof(value) if is_exactly(value, *known) else 0
