"""What is of interest among all objects: containers, tensors, and instances of the program's own.

Going through everything is what a look costs (23 ms for the list of 286,000 objects and 18 ms to
pick from it, by C alone), so it is done once a look.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable
from itertools import compress
from typing import Any

from leakscope.observe.moments import wait_for_calm
from leakscope.observe.own_things import (
    has_odd_metaclass,
    held_by_the_program,
    own_classes,
    own_locals,
)

_BASES: tuple[type, ...] = (list, dict, set, deque)


class Heap:
    """A look at everything. Holds objects of the program: lives within one look only."""

    def __init__(self, *, with_hidden: bool = True, is_deep: bool = False) -> None:
        """Hidden are dicts that hold nothing but atoms and arrays: the collector does not track
        them, and they are found through their holders only. Through those of the program's own
        classes, modules and functions, or, deep, through all there are (60 ms more)."""
        # A class is known by its id where its metaclass has its own hash, which is not ours to run.
        key: Callable[[type], Any] = id if has_odd_metaclass() else _itself
        bases = {key(kind): base for base in _BASES for kind in with_subclasses(base)}
        tensors = set(map(key, _tensor_types()))
        own = set(map(key, own_classes())) if with_hidden and not is_deep else set()
        wanted = {*bases, *tensors, *own}
        local_values = own_locals() if with_hidden and not is_deep else []
        wait_for_calm()
        # Held as shortly as can be: it may have a tuple that another thread is filling right now,
        # and Python refuses to fill one that somebody else refers to.
        objects = gc.get_objects()
        kinds = map(type, objects) if key is _itself else map(id, map(type, objects))
        picked = list(compress(objects, map(wanted.__contains__, kinds)))
        all_referents = gc.get_referents(*objects) if is_deep else []
        del objects
        self.tensors = [one for one in picked if key(type(one)) in tensors]
        referents: list[Any] = []
        if is_deep:
            referents = all_referents
            del all_referents
        elif with_hidden:
            instances = [one for one in picked if key(type(one)) in own]
            referents = held_by_the_program(instances, local_values)
        self.hidden = _untracked_dicts(referents)
        self.arrays = _arrays(referents)
        """NumPy's, which the collector does not track either."""
        del referents
        containers: dict[type, list[Any]] = {base: [] for base in _BASES}
        for one in picked:
            base = bases.get(key(type(one)))
            if base is not None:
                containers[base].append(one)
        self.containers = [*containers.items(), (dict, self.hidden)]
        """By their built-in base; the hidden ones last."""


def with_subclasses(base: type) -> list[type]:
    kinds: dict[int, type] = {}
    stack = [base]
    while stack:
        kind = stack.pop()
        if id(kind) not in kinds:
            kinds[id(kind)] = kind
            stack.extend(type.__subclasses__(kind))
    return list(kinds.values())


def _itself(kind: type) -> type:
    return kind


def _tensor_types() -> list[type]:
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None) if torch is not None else None
    return with_subclasses(tensor) if tensor is not None else []


def _arrays(objects: list[Any]) -> list[Any]:
    numpy = sys.modules.get("numpy")
    kind = getattr(numpy, "ndarray", None) if numpy is not None else None
    if kind is None:
        return []
    return list({id(one): one for one in objects if type(one) is kind}.values())


def _untracked_dicts(objects: list[Any]) -> list[dict[Any, Any]]:
    found = {id(one): one for one in objects if type(one) is dict and not gc.is_tracked(one)}
    return list(found.values())
