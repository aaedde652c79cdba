"""A cycle of references, drawn: from an object along its references back to itself."""

from __future__ import annotations

import gc
from typing import Any

from leakscope.model import Link
from leakscope.observe.anatomy import describe
from leakscope.observe.links import links_of
from leakscope.observe.referents import referents_of

_MOST_VISITED = 2_000


def links_of_cycle(start: Any) -> tuple[Link, ...]:
    """The shortest way from the object back to it, told from the outside in."""
    chain = _way_back(start)
    root = Link("nothing holds it but itself, until the collector runs", describe(start), "garbage")
    return (root, *links_of(chain)) if chain else (root,)


def is_in_cycle(one: Any) -> bool:
    return bool(_way_back(one))


def _way_back(start: Any) -> list[Any]:
    above: dict[int, Any] = {}
    seen = {id(start)}
    level = [start]
    while level and len(seen) < _MOST_VISITED:
        below = []
        for one in level:
            for other in referents_of(one):
                if other is start:
                    return _chain(one, above, start)
                if gc.is_tracked(other) and id(other) not in seen and type(other) is not type:
                    seen.add(id(other))
                    above[id(other)] = one
                    below.append(other)
        level = below
    return []


def _chain(last: Any, above: dict[int, Any], start: Any) -> list[Any]:
    """From the start down to the last, and the start again."""
    chain = [start]
    while last is not start:
        chain.append(last)
        last = above[id(last)]
    return [start, *reversed(chain)] if len(chain) == 1 else [start, *reversed(chain[1:]), start]
