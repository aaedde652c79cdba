"""The way around a reference cycle, from one of its objects back to itself."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import numpy as np

from leakscope.heap.roots import Owners
from leakscope.heap.snapshot import NAME_MASK, HeapSnapshot, read_snapshot
from leakscope.heap.type_table import HeapType
from leakscope.model import Link, LinkKind
from leakscope.record.snapshot_file import ROLE_SHIFT, EdgeRole

_MOST_NODES = 10_000
"""A cycle that is not closed within so many objects is not one that a reader could follow."""

_NOT_FOLLOWED = frozenset({EdgeRole.TYPE, EdgeRole.GLOBALS, EdgeRole.CODE, EdgeRole.CLASS_LINK})
"""Of these nobody would say that they close a cycle."""

_NAMED_ROLES = frozenset({EdgeRole.NAME, EdgeRole.ATTRIBUTE})
_SEEN_THROUGH = frozenset({EdgeRole.NAMESPACE, EdgeRole.CLOSURE_TUPLE, EdgeRole.CELL})


def links_around(file: Path, address: int) -> tuple[Link, ...]:
    """The references from an object through others back to it; empty if there is no short way."""
    snapshot = read_snapshot(file)
    if snapshot is None:
        return ()
    (start,) = snapshot.find([address])
    edges = _shortest_cycle(snapshot, start) if start >= 0 else []
    words = _Words(snapshot)
    links = []
    source = start
    for edge in edges:
        target = int(snapshot.targets[edge])
        link = words.link(edge, source, target)
        if link is not None:
            links.append(link)
        role = int(snapshot.labels[edge]) >> ROLE_SHIFT
        source = source if role == EdgeRole.NAMESPACE else target
    return tuple(links)


def _shortest_cycle(snapshot: HeapSnapshot, start: int) -> list[int]:
    """The edges of it, in order."""
    came_by: dict[int, tuple[int, int]] = {}
    waiting = deque([start])
    while waiting and len(came_by) < _MOST_NODES:
        node = waiting.popleft()
        for edge in range(int(snapshot.starts[node]), int(snapshot.starts[node + 1])):
            target = int(snapshot.targets[edge])
            if int(snapshot.labels[edge]) >> ROLE_SHIFT in _NOT_FOLLOWED:
                continue
            if target == start:
                return _way_back(came_by, node, edge)
            if target not in came_by:
                came_by[target] = (node, edge)
                waiting.append(target)
    return []


def _way_back(came_by: dict[int, tuple[int, int]], node: int, last: int) -> list[int]:
    edges = [last]
    while node in came_by:
        node, edge = came_by[node]
        edges.append(edge)
    edges.reverse()
    return edges


class _Words:
    def __init__(self, snapshot: HeapSnapshot) -> None:
        self._snapshot = snapshot
        self._files = Owners(snapshot.meta).files

    def link(self, edge: int, source: int, target: int) -> Link | None:
        """One reference in words; None for Python's own parts."""
        snapshot = self._snapshot
        label = int(snapshot.labels[edge])
        role = label >> ROLE_SHIFT
        if role in _SEEN_THROUGH:
            return None
        pointer = np.array([label & NAME_MASK], np.uint64)
        name = snapshot.names.texts[int(snapshot.names.find(pointer)[0])]
        owner, kind = self._type(source), self._type(target)
        if role in _NAMED_ROLES and name:
            file = self._files.get(owner.module, "")
            return Link(f".{name}", kind.name, LinkKind.ATTRIBUTE, name, file, owner.qualified_name)
        if role == EdgeRole.SELF:
            return Link("self of a bound method", kind.name, LinkKind.BOUND)
        if role == EdgeRole.CLOSURE and name:
            return Link(f"closure {name}", kind.name, LinkKind.CLOSURE, name)
        return Link("[x]", kind.name, LinkKind.ITEM)

    def _type(self, node: int) -> HeapType:
        return self._snapshot.type_table[int(self._snapshot.types[node])]
