"""What is of interest among all objects: containers, tensors, and instances of the program's own.

Going through everything is what a look costs (23 ms for the list of 286,000 objects and 18 ms to
pick from it, by C alone), so it is done once a look.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Iterator
from itertools import compress, repeat
from operator import is_
from typing import Any

from leakscope.observe import tees
from leakscope.observe.moments import wait_for_calm
from leakscope.observe.own_things import (
    has_odd_metaclass,
    held_by_the_program,
    own_classes,
    own_locals,
)
from leakscope.observe.referents import referents_of

_MOST_ATTRIBUTES = 64
_BASES: tuple[type, ...] = (list, dict, set, deque, tees.END)


class Heap:
    """A look at everything. Holds objects of the program: lives within one look only."""

    def __init__(self, *, with_hidden: bool = True, is_deep: bool = False) -> None:
        """Hidden are dicts that hold nothing but atoms and arrays: the collector does not track
        them, and they are found through their holders only. Through those of the program's own
        classes, modules and functions, or, deep, through all there are (60 ms more)."""
        # A class is known by its id where its metaclass has its own hash, which is not ours to run.
        is_odd = has_odd_metaclass()
        # Frozen sets and tuples, for those are not looked for: a set of ours would be found here,
        # and again at the next look, where another lies at its address and has grown.
        bases = tuple(keys_of(with_subclasses(base), is_odd) for base in _BASES)
        tensors = keys_of(_tensor_types(), is_odd)
        own = keys_of(own_classes(), is_odd)
        wanted = tensors.union(own, *bases)
        local_values = tuple(own_locals() if with_hidden and not is_deep else ())
        wait_for_calm()
        # Held as shortly as can be: it may have a tuple that another thread is filling right now,
        # and Python refuses to fill one that somebody else refers to.
        objects = gc.get_objects()
        picked = list(of_kinds(wanted, objects, is_odd))
        all_referents = referents_of(*objects) if is_deep else []
        del objects
        self.tensors = list(of_kinds(tensors, picked, is_odd))
        self.instances = list(of_kinds(own, picked, is_odd))
        """Of the program's own classes."""
        referents: list[Any] = []
        if is_deep:
            referents = all_referents
            del all_referents
        elif with_hidden:
            referents = held_by_the_program(self.instances, local_values)
        referents = list(of_kinds(keys_of([dict, *_array_types()], is_odd), referents, is_odd))
        self.hidden = _untracked_dicts(referents)
        # An instance whose attributes are arrays and numbers has such a dict as well.
        small = [one for one in self.hidden if dict.__len__(one) <= _MOST_ATTRIBUTES]
        self.arrays = _arrays(referents + gc.get_referents(*small))
        """NumPy's, which the collector does not track either."""
        del referents, small
        groups = [list(of_kinds(kinds, picked, is_odd)) for kinds in bases]
        self.containers = [*zip(_BASES, groups, strict=True), (dict, self.hidden)]
        """By their built-in base; the hidden ones last."""
        arrays = tensors | keys_of(_array_types(), is_odd)
        self.lists_of_arrays = list(_lists_that_begin_with(arrays, groups[0], is_odd))


def with_subclasses(base: type) -> list[type]:
    kinds: dict[int, type] = {}
    stack = [base]
    while stack:
        kind = stack.pop()
        if id(kind) not in kinds:
            kinds[id(kind)] = kind
            stack.extend(type.__subclasses__(kind))
    return list(kinds.values())


def keys_of(kinds: list[type], is_odd: bool) -> frozenset[Any]:
    return frozenset(map(id, kinds)) if is_odd else frozenset(kinds)


def of_kinds(wanted: frozenset[Any], objects: list[Any], is_odd: bool) -> Iterator[Any]:
    """Picked by C alone: 43,000 of 290,000 objects in 10 ms."""
    kinds = map(id, map(type, objects)) if is_odd else map(type, objects)
    return compress(objects, map(wanted.__contains__, kinds))


def _lists_that_begin_with(
    wanted: frozenset[Any], lists: list[list[Any]], is_odd: bool
) -> Iterator[list[Any]]:
    filled = list(compress(lists, map(list.__len__, lists)))
    try:
        firsts = list(map(list.__getitem__, filled, repeat(0)))
    except IndexError:
        return iter(())  # another thread has emptied one
    kinds = map(id, map(type, firsts)) if is_odd else map(type, firsts)
    return compress(filled, map(wanted.__contains__, kinds))


def _tensor_types() -> list[type]:
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None) if torch is not None else None
    return with_subclasses(tensor) if tensor is not None else []


def _array_types() -> list[type]:
    numpy = sys.modules.get("numpy")
    kind = getattr(numpy, "ndarray", None) if numpy is not None else None
    return [kind] if kind is not None else []


def _arrays(objects: list[Any]) -> list[Any]:
    found = {id(one): one for kind in _array_types() for one in _exactly(kind, objects)}
    return list(found.values())


def _untracked_dicts(objects: list[Any]) -> list[dict[Any, Any]]:
    found = {id(one): one for one in _exactly(dict, objects) if not gc.is_tracked(one)}
    return list(found.values())


def _exactly(kind: type, objects: list[Any]) -> Iterator[Any]:
    """Picked by C alone: a deep look goes through a million references."""
    return compress(objects, map(is_, map(type, objects), repeat(kind)))
