"""What is of interest among all objects: containers, tensors, and instances of the program's own.

Going through everything is what a look costs (23 ms for the list of 286,000 objects and 18 ms to
pick from it, by C alone), so it is done once a look.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from itertools import compress
from typing import Any

from leakscope.observe.own_things import held_by_the_program, own_classes, own_locals

_BASES: tuple[type, ...] = (list, dict, set, deque)


class Heap:
    """A look at everything. Holds objects of the program: lives within one look only."""

    def __init__(self, *, with_hidden: bool = True, is_deep: bool = False) -> None:
        """Hidden are dicts that hold nothing but atoms and arrays: the collector does not track
        them, and they are found through their holders only. Through those of the program's own
        classes, modules and functions, or, deep, through all there are (60 ms more)."""
        bases = {kind: base for base in _BASES for kind in with_subclasses(base)}
        tensors = _tensor_types()
        own = own_classes() if with_hidden and not is_deep else set()
        wanted = {*bases, *tensors, *own}
        local_values = own_locals() if with_hidden and not is_deep else []
        objects = gc.get_objects()
        picked = list(compress(objects, map(wanted.__contains__, map(type, objects))))
        self.tensors = [one for one in picked if type(one) in tensors]
        referents: list[Any] = []
        if is_deep:
            referents = gc.get_referents(*objects)
        elif with_hidden:
            instances = [one for one in picked if type(one) in own]
            referents = held_by_the_program(instances, local_values)
        del objects
        self.hidden = _untracked_dicts(referents)
        self.arrays = _arrays(referents)
        """NumPy's, which the collector does not track either."""
        del referents
        containers: dict[type, list[Any]] = {base: [] for base in _BASES}
        for one in picked:
            base = bases.get(type(one))
            if base is not None:
                containers[base].append(one)
        self.containers = [*containers.items(), (dict, self.hidden)]
        """By their built-in base; the hidden ones last."""


def with_subclasses(base: type) -> set[type]:
    kinds: set[type] = set()
    stack = [base]
    while stack:
        kind = stack.pop()
        if kind not in kinds:
            kinds.add(kind)
            stack.extend(type.__subclasses__(kind))
    return kinds


def _tensor_types() -> set[type]:
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None) if torch is not None else None
    return with_subclasses(tensor) if tensor is not None else set()


def _arrays(objects: list[Any]) -> list[Any]:
    numpy = sys.modules.get("numpy")
    kind = getattr(numpy, "ndarray", None) if numpy is not None else None
    if kind is None:
        return []
    return list({id(one): one for one in objects if type(one) is kind}.values())


def _untracked_dicts(objects: list[Any]) -> list[dict[Any, Any]]:
    found = {id(one): one for one in objects if type(one) is dict and not gc.is_tracked(one)}
    return list(found.values())
