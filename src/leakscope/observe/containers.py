"""Which containers grew between two looks: their lengths, noted by address and compared.

Only lengths and addresses are kept between looks, never a container. Lengths are read with the
methods of the built-in type, so that no method of a program's own class runs.
"""

from __future__ import annotations

import gc
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from leakscope.observe.own_things import held_by_the_program, own_classes

_LENGTHS: dict[type, Callable[[Any], int]] = {
    list: list.__len__,
    dict: dict.__len__,
    set: set.__len__,
    deque: deque.__len__,
}

_SLOT_BYTES: dict[type, float] = {list: 9.0, dict: 104.0, set: 32.0, deque: 8.5}
"""What one more entry costs the container itself, over-allocation included: a list grows by an
eighth, a dict holds 24 bytes and a share of the index per entry and doubles at two thirds."""

_MAXLEN: Any = deque.__dict__["maxlen"]

Groups = list[tuple[type, list[Any]]]

_FEWEST = 2
_FEWEST_A_STEP = 0.05


class Lengths(NamedTuple):
    """How long the containers were at one look."""

    step: int
    ids: array[int]
    lengths: array[int]
    is_deep: bool = False

    @property
    def own_bytes(self) -> int:
        return (len(self.ids) + len(self.lengths)) * 8


class Growing(NamedTuple):
    """A container that grew, by its address: may be kept between looks."""

    id: int
    before: int


class Grower(NamedTuple):
    """A container that has become longer. Lives within one look only."""

    it: Any
    base: type
    before: int
    now: int

    @property
    def grown(self) -> int:
        return self.now - self.before

    @property
    def slot_bytes(self) -> float:
        return _SLOT_BYTES[self.base]

    def newest(self, most: int) -> list[Any]:
        """Some of what has been added last; of a set, of what is in it; of a dict, the values."""
        most = min(most, self.grown)
        try:
            return list(_newest(self.it, self.base, most))
        except RuntimeError:
            return []  # another thread changes it right now

    def newest_keys(self, most: int) -> list[Any]:
        most = min(most, self.grown)
        try:
            return list(islice(dict.__reversed__(self.it), most)) if self.base is dict else []
        except RuntimeError:
            return []

    @property
    def bound(self) -> str:
        """Why it cannot grow for ever, if it says so itself."""
        most = _maxlen_of(self.it) if self.base is deque else None
        return f"it is a deque with maxlen={most:,}" if most is not None else ""


def bases_by_type() -> dict[type, type]:
    """Every type of container there is, and the built-in one it derives from."""
    return {kind: base for base in _LENGTHS for kind in with_subclasses(base)}


def with_subclasses(base: type) -> set[type]:
    kinds: set[type] = set()
    stack = [base]
    while stack:
        kind = stack.pop()
        if kind not in kinds:
            kinds.add(kind)
            stack.extend(type.__subclasses__(kind))
    return kinds


def note_lengths(groups: Groups, step: int, *, is_deep: bool = False) -> Lengths:
    ids, lengths = array("Q"), array("Q")
    for base, group in groups:
        ids.extend(map(id, group))
        lengths.extend(map(_LENGTHS[base], group))
    return Lengths(step, ids, lengths, is_deep)


def find_growing(now: Lengths, before: Lengths) -> list[Growing]:
    """Containers that are longer than they were, the longest growth first."""
    known = dict(zip(before.ids, before.lengths, strict=True))
    fewest = max(_FEWEST, _FEWEST_A_STEP * (now.step - before.step))
    growing = [
        (length - known[key], Growing(key, known[key]))
        for key, length in zip(now.ids, now.lengths, strict=True)
        if length >= fewest and length - known.get(key, length) >= fewest
    ]
    growing.sort(key=lambda one: -one[0])
    return [one for _, one in growing]


def find_again(growing: list[Growing], objects: list[Any], *, is_deep: bool) -> list[Grower]:
    """The containers at those addresses, if they are still longer; in the same order.

    Called while allocations are traced, so it makes as few objects of its own as it can."""
    bases = bases_by_type()
    wanted = {one.id: one.before for one in growing}
    containers = [one for one in objects if type(one) in bases]
    found = {key: one for one in containers if (key := id(one)) in wanted}
    if len(found) < len(wanted):
        found.update((id(one), one) for one in _hidden(objects, is_deep) if id(one) in wanted)
    growers = []
    for one in growing:
        if one.id in found:
            it = found[one.id]
            base = bases[type(it)]
            if (now := _LENGTHS[base](it)) > one.before:
                growers.append(Grower(it, base, one.before, now))
    return growers


def group_containers(objects: list[Any], *, is_deep: bool) -> Groups:
    """The containers among some objects, by their built-in base. One comprehension over everything,
    for that is what costs: 40 ns an object."""
    bases = bases_by_type()
    picked = [one for one in objects if type(one) in bases]
    groups: Groups = [
        (base, [one for one in picked if bases[type(one)] is base]) for base in _LENGTHS
    ]
    groups.append((dict, _hidden(objects, is_deep)))
    return groups


def _hidden(objects: list[Any], is_deep: bool) -> list[dict[Any, Any]]:
    """Dicts that hold nothing but atoms and arrays: the collector does not track them, and they are
    found through their holders only. Through those of the program's own classes, modules and
    functions always, deep through all objects there are (100 ms more in a PyTorch process)."""
    if is_deep:
        referents = gc.get_referents(*objects)
    else:
        own = own_classes()
        referents = held_by_the_program([one for one in objects if type(one) in own])
    hidden = {id(one): one for one in referents if type(one) is dict and not gc.is_tracked(one)}
    return list(hidden.values())


def _maxlen_of(it: Any) -> int | None:
    most = _MAXLEN.__get__(it)
    return most if type(most) is int else None


def _newest(it: Any, base: type, most: int) -> Iterator[Any]:
    if base is list:
        return iter(list.__getitem__(it, slice(-most, None)))
    if base is deque:
        return iter([deque.__getitem__(it, -1 - i) for i in range(most)])
    if base is dict:
        return islice(reversed(dict.values(it)), most)
    return islice(set.__iter__(it), most)
