"""Which containers grew between two looks: their lengths, noted by address and compared.

Only lengths and addresses are kept between looks, never a container. Lengths are read with the
methods of the built-in type, so that no method of a program's own class runs.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator
from itertools import compress, islice
from typing import Any, NamedTuple

from leakscope.observe import tees
from leakscope.observe.old_heap import Heap
from leakscope.observe.piles import our_tables

_LENGTHS: dict[type, Callable[[Any], int]] = {
    list: list.__len__,
    dict: dict.__len__,
    set: set.__len__,
    deque: deque.__len__,
    tees.END: tees.length_of,
}
BASES = tuple(_LENGTHS)

_SIZES: dict[type, Callable[[Any], int]] = {
    list: list.__sizeof__,
    dict: dict.__sizeof__,
    set: set.__sizeof__,
    deque: deque.__sizeof__,
}
_MOST_A_SLOT: dict[type, float] = {
    list: 9.2,
    dict: 62.0,
    set: 107.0,
    deque: 8.5,
    tees.END: 9.0,
}
"""What one entry costs the container itself, right after it was made larger: a list grows by an
eighth, a dict doubles at two thirds, a set quadruples at three fifths. Tables that were emptied
keep their size, so that the entries they have may seem to cost any amount."""

_MAXLEN: Any = deque.__dict__["maxlen"]

_FEWEST = 2
_FEWEST_A_STEP = 0.01
"""Once in a hundred steps: an epoch's outputs, a state kept at each evaluation. At 0.05 two
programs of the zoo that keep something every 20 and every 50 steps were not found; no value between
was tried."""


def length_of(container: Any, base: type) -> int:
    """As the built-in type counts it."""
    return _LENGTHS[base](container)


class Lengths(NamedTuple):
    """How long the containers were at one look."""

    step: int
    ids: array[int]
    lengths: array[int]
    tracked: int = 0
    """The first so many are tracked by the collector; the others are hidden from it."""

    @property
    def own_bytes(self) -> int:
        return (len(self.ids) + len(self.lengths)) * 8


class Growing(NamedTuple):
    """A container that grew, by its address: may be kept between looks."""

    id: int
    before: int
    then: int
    """Its length when it was found to have grown."""
    is_hidden: bool = False
    """The collector does not track it."""


class Grower(NamedTuple):
    """A container that has become longer. Lives within one look only."""

    it: Any
    base: type
    before: int
    then: int
    now: int

    @property
    def grown(self) -> int:
        return self.now - self.before

    @property
    def slot_bytes(self) -> float:
        """What one more entry costs the container itself, over-allocation included. It is made
        larger once in a while, by all that it has: of a set of 47,000, 44 bytes each."""
        size_of, most = _SIZES.get(self.base), _MOST_A_SLOT[self.base]
        return min(size_of(self.it) / max(self.now, 1), most) if size_of is not None else most

    def newest(self, most: int) -> list[Any]:
        """Some of what has been added last; of a set, of what is in it; of a dict, the values.
        Not the very last: the step that is under way holds that too."""
        return self._without_last(_newest, min(most + 1, self.grown))

    def before_newest(self, newest: int, most: int) -> list[Any]:
        """Some of what came right before so many newest ones, and is of their kind."""
        most = min(newest + most + 1, 2 * self.grown, self.now)
        return self._without_last(_newest, most)[newest:]

    def newest_keys(self, most: int) -> list[Any]:
        if self.base is not dict:
            return []
        return self._without_last(_newest_keys, min(most + 1, self.grown))

    def _without_last(
        self, read: Callable[[Any, type, int], Iterator[Any]], most: int
    ) -> list[Any]:
        try:
            items = list(read(self.it, self.base, most))
        except RuntimeError:
            return []  # another thread changes it right now
        return items[1:] if len(items) > 1 else items

    @property
    def bound(self) -> str:
        """Why it cannot grow for ever, if it says so itself."""
        most = _maxlen_of(self.it) if self.base is deque else None
        return f"it is a deque with maxlen={most:,}" if most is not None else ""


def note_lengths(heap: Heap, step: int) -> Lengths:
    ids, lengths = array("Q"), array("Q")
    for base, group in heap.containers:
        ids.extend(map(id, group))
        lengths.extend(map(_LENGTHS[base], group))
    return Lengths(step, ids, lengths, len(ids) - len(heap.hidden))


def find_growing(now: Lengths, before: Lengths) -> list[Growing]:
    """Containers that are longer than they were, the longest growth first."""
    known = dict(zip(before.ids, before.lengths, strict=True))
    fewest = max(_FEWEST, _FEWEST_A_STEP * (now.step - before.step))
    ours = set(map(id, our_tables))
    growing = [
        (length - known[key], Growing(key, known[key], length, place >= now.tracked))
        for place, (key, length) in enumerate(zip(now.ids, now.lengths, strict=True))
        if length >= fewest and length - known.get(key, length) >= fewest and key not in ours
    ]
    growing.sort(key=lambda one: -one[0])
    return [one for _, one in growing]


def find_again(growing: list[Growing], heap: Heap) -> list[Grower]:
    """The containers at those addresses, if they are still longer; in the same order."""
    wanted = {one.id for one in growing}
    found = {}
    for base, group in heap.containers:
        for one in compress(group, map(wanted.__contains__, map(id, group))):
            found[id(one)] = (one, base)
    growers = []
    for one in growing:
        if one.id in found:
            it, base = found[one.id]
            if (now := _LENGTHS[base](it)) > one.before:
                growers.append(Grower(it, base, one.before, one.then, now))
    return growers


def _maxlen_of(it: Any) -> int | None:
    most = _MAXLEN.__get__(it)
    return most if type(most) is int else None


def _newest_keys(it: Any, base: type, most: int) -> Iterator[Any]:
    return islice(dict.__reversed__(it), most)


def _newest(it: Any, base: type, most: int) -> Iterator[Any]:
    """The last first."""
    if base is list:
        return iter(list.__getitem__(it, slice(-1, -most - 1, -1)))
    if base is deque:
        return iter([deque.__getitem__(it, -1 - i) for i in range(most)])
    if base is dict:
        return islice(reversed(dict.values(it)), most)
    return tees.newest(it, most) if base is tees.END else islice(set.__iter__(it), most)
