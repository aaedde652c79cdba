"""Python objects in bulk that a data set brought into a worker by fork.

Reading an object writes its reference count, and the page it lies on is copied: a worker's private
memory grows although it allocates nothing. Who lies on those pages is found once, at the worker's
first batch, by following the data set's attributes; elements are not visited, only counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from leakscope.model import Link
from leakscope.observe.anatomy import class_file, class_name, class_qualname, dict_of, is_kind

_ENOUGH = 5_000
"""Objects below this number lie on a few hundred pages: not worth a word."""
_DEEPEST = 3
_MOST_ATTRIBUTES = 200
_ATOMS = (bool, type(None))


class Preloaded(NamedTuple):
    links: tuple[Link, ...]
    objects: int
    item: str


def find_preloaded(dataset: Any) -> Preloaded | None:
    """The largest container of Python objects below a data set, with the way to it."""
    found: list[Preloaded] = []
    root = Link("the worker's data set", class_name(type(dataset)), "local")
    level: list[tuple[Any, tuple[Link, ...]]] = [(dataset, (root,))]
    for _ in range(_DEEPEST):
        below: list[tuple[Any, tuple[Link, ...]]] = []
        for owner, links in level:
            for value, link in _parts(owner):
                count = _bulk(value)
                if count >= _ENOUGH:
                    found.append(Preloaded((*links, link), count, _item_of(value)))
                elif len(below) < _MOST_ATTRIBUTES:
                    below.append((value, (*links, link)))
        level = below
    return max(found, key=lambda one: one.objects, default=None)


def _parts(owner: Any) -> Iterator[tuple[Any, Link]]:
    kind = type(owner)
    if kind in (list, tuple):
        for value in list(owner)[:_MOST_ATTRIBUTES]:
            yield value, Link("[x]", class_name(type(value)), "item")
        return
    namespace = owner if kind is dict else dict_of(owner)
    for name, value in list((namespace or {}).items())[:_MOST_ATTRIBUTES]:
        if type(name) is not str or type(value) in _ATOMS:
            continue
        if kind is dict:
            yield value, Link(f'["{name}"]', class_name(type(value)), "item")
        else:
            yield (
                value,
                Link(
                    f".{name}",
                    class_name(type(value)),
                    "attribute",
                    name,
                    class_file(kind),
                    class_qualname(kind),
                ),
            )


def _bulk(value: Any) -> int:
    """How many Python objects lie directly in it; 0 if they are none of their own."""
    for base in (list, dict, tuple, set):
        if is_kind(value, base):
            return int(base.__len__(value)) if _first(value, base) is not None else 0
    return 0


def _first(value: Any, base: type) -> Any:
    try:
        iterator = iter(dict.values(value)) if base is dict else base.__iter__(value)  # type: ignore[attr-defined]
        return next(iterator, None)
    except RuntimeError:
        return None  # changes right now


def _item_of(value: Any) -> str:
    for base in (list, dict, tuple, set):
        if is_kind(value, base):
            return class_name(type(_first(value, base)))
    return ""
