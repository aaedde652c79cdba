"""How long the things are by now that a look found growing: read again by their names.

A look says who holds; that it still does, a thousand steps later, takes no look. `local calibration
in main()` or `module train > .cache` is found again by its name, from the root down, and only its
length is read: 40 µs through thirty frames. No object of the program is kept in between. A list
that is made anew for every epoch shows so too: it is shorter than it was.

Now and then its newest items are weighed as well: a copy of the whole curve so far is four bytes
heavier in every step, and what the look weighed is soon the smaller part of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from leakscope.model import Holding, Link
from leakscope.observe.anatomy import (
    attribute_of,
    class_dict,
    class_file,
    is_kind,
    module_dict,
    module_file,
    slots_of,
)
from leakscope.observe.containers import BASES, Grower, length_of
from leakscope.observe.frames import locals_of, running_frames
from leakscope.observe.leads import Lead
from leakscope.observe.weighing import weighed

_FARTHER = 1.1
"""From one count to the next: a run of a million steps has some hundred of them, and the last lies
in its last tenth. At 1.25 a run of 960 steps, looked at late, had one more: that is no series."""
_FEWEST_STEPS = 8
_MOST_FOLLOWED = 8
_FARTHER_WEIGHED = 1.25
_MOST_WEIGHED, _ITEMS_WEIGHED, _MOST_VISITED = 3, 4, 120
"""Each of the heaviest takes some 0.3 ms: 2 % of the steps between where one takes a millisecond
and the look was at step 200, and ever less. Choices."""
_VARIABLES = ("local", "closure")
_MODULE_TABLES = ("_modules", "_buffers", "_parameters")
_KEY_BEGINS, _KEY_ENDS = '["', '"]'


class Counted(NamedTuple):
    """One of them, with its length now."""

    path: str
    length: int
    bytes_each: int = 0
    """Of its newest items; 0 where they were not weighed."""


class Recount:
    """Follows what the last look told of. Keeps words and numbers only."""

    def __init__(self) -> None:
        self._paths: list[tuple[Link, ...]] = []
        self._first = self._next = self._next_weighed = 0

    def follow(self, holdings: list[Holding], step: int) -> None:
        """From now on these, instead of those before."""
        paths = [one.path[: one.grows_at + 1] for one in holdings if _can_be_followed(one)]
        self._paths = paths[:_MOST_FOLLOWED]
        if self._paths:
            self._first = self._first or min(holding.counts[0][0] for holding in holdings)
            self._put_off(step)
            self._put_off_weighing(step)

    def is_due(self, step: int) -> bool:
        return bool(self._paths) and step >= self._next

    def count(self, step: int) -> list[Counted]:
        """All that are found again; a variable of a function that has returned is not."""
        self._put_off(step)
        is_weighed = step >= self._next_weighed
        if is_weighed:
            self._put_off_weighing(step)
        counted = []
        for number, path in enumerate(self._paths):
            found = _found_at(path)
            if found is None:
                continue
            container, base = found
            length = length_of(container, base)
            has_weight = is_weighed and number < _MOST_WEIGHED
            each = _weight_of_newest(container, base, length) if has_weight else 0
            counted.append(Counted(words_of(path), length, each))
        return counted

    def forget(self) -> None:
        self._paths = []

    def _put_off(self, step: int) -> None:
        farther = self._first + int((step - self._first) * _FARTHER)
        self._next = max(farther, step + _FEWEST_STEPS)

    def _put_off_weighing(self, step: int) -> None:
        self._next_weighed = self._first + int((step - self._first) * _FARTHER_WEIGHED)


def words_of(path: tuple[Link, ...]) -> str:
    return " > ".join(link.via for link in path)


def _can_be_followed(holding: Holding) -> bool:
    """One container, each link to which has a name of its own."""
    if holding.kind != "container" or holding.holders > 1:
        return False
    root, *links = holding.path[: holding.grows_at + 1]
    has_root = root.kind in ("module", "class") or (root.kind in _VARIABLES and bool(root.name))
    return has_root and all(link.name or _key_in(link) is not None for link in links)


def _key_in(link: Link) -> str | None:
    """Of `["loss"]`, the key; None for an item that has none of its own."""
    if link.via.startswith(_KEY_BEGINS) and link.via.endswith(_KEY_ENDS):
        return link.via[len(_KEY_BEGINS) : -len(_KEY_ENDS)]
    return None


def _weight_of_newest(container: Any, base: type, length: int) -> int:
    """What each of them keeps alive, in bytes."""
    grower = Grower(container, base, 0, 0, length)
    items, keys = grower.newest(_ITEMS_WEIGHED), grower.newest_keys(_ITEMS_WEIGHED)
    lead = Lead("container", container, 0, length, items, keys, grower.slot_bytes)
    return int(weighed(lead, frozenset({id(container)}), {}, _MOST_VISITED).each) if items else 0


def _found_at(path: tuple[Link, ...]) -> tuple[Any, type] | None:
    """The container, and which of the built-in ones it is."""
    root, *links = path
    for start in _places_of(root):
        place = start
        for link in links:
            place = _next_place(place, link) if place is not None else None
        for base in BASES:
            if is_kind(place, base):
                return place, base
    return None


def _places_of(root: Link) -> Iterator[Any]:
    """What the first link names: a module's names, a class, the value of a variable."""
    if root.kind == "module":
        module = sys.modules.get(root.name)
        if module is not None:
            yield module_dict(module)
    elif root.kind == "class":
        yield from _classes_at(root)
    else:
        for running in running_frames():
            code = running.frame.f_code
            if code.co_qualname == root.scope and code.co_filename == root.file:
                with locals_of(running.frame) as names:
                    value = names.get(root.name)
                if value is not None:
                    yield value


def _classes_at(root: Link) -> Iterator[type]:
    outer, *inner = root.scope.split(".")
    for module in list(sys.modules.values()):
        names = module_dict(module)
        if module_file(names) == root.file:
            place: Any = names.get(outer)
            for name in inner:
                place = class_dict(place).get(name) if issubclass(type(place), type) else None
            if issubclass(type(place), type) and class_file(place) == root.file:
                yield place


def _next_place(place: Any, link: Link) -> Any:
    key = _key_in(link)
    if key is not None:
        return dict.get(place, key) if is_kind(place, dict) else None
    if link.kind == "global":
        return place.get(link.name) if type(place) is dict else None
    if issubclass(type(place), type):
        return class_dict(place).get(link.name)
    value = attribute_of(place, link.name)
    if value is None:
        tables = (attribute_of(place, table) for table in _MODULE_TABLES)
        found = (table.get(link.name) for table in tables if type(table) is dict)
        value = next((one for one in found if one is not None), None)
    if value is None:
        value = next((one for name, one in slots_of(place) if name == link.name), None)
    return value
