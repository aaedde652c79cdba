"""Retained bytes: what would be freed if something were.

Exact, by a search from the roots around the objects in question. A dominator tree gives it for
every object at once, and cannot be had of groups: where a second list holds half of the items of a
first, the groups say that the first retains none of them.
"""

from __future__ import annotations

import numpy as np

from leakscope.heap.arrays import AnyArray, Booleans
from leakscope.heap.reach import Reach
from leakscope.heap.roots import find_roots
from leakscope.heap.snapshot import HeapSnapshot


class Retained:
    """What objects of one snapshot keep alive alone."""

    def __init__(self, snapshot: HeapSnapshot) -> None:
        self._snapshot = snapshot
        roots = find_roots(snapshot)
        self._roots = np.concatenate([stage.nodes for stage in (*roots.stages, roots.ours)])
        self._is_alive = self._reached(np.empty(0, np.int64))

    def bytes_by(self, nodes: AnyArray) -> int:
        """Bytes that no root leads to but through these nodes, their own included."""
        return int(self._snapshot.bytes[self._only_by(nodes)].sum())

    def bytes_among(self, nodes: AnyArray, wanted: AnyArray) -> int:
        """The same of the wanted objects only."""
        return int(self._snapshot.bytes[wanted[self._only_by(nodes)[wanted]]].sum())

    def _only_by(self, nodes: AnyArray) -> Booleans:
        return self._is_alive & ~self._reached(nodes)

    def _reached(self, around: AnyArray) -> Booleans:
        snapshot = self._snapshot
        reach = Reach(snapshot.starts, snapshot.targets, np.zeros(len(snapshot.targets), np.uint8))
        reach.is_reached[around] = True
        reach.begin(self._roots, np.zeros(len(self._roots), np.int64))
        reach.follow(0, 0)
        reach.is_reached[around] = False
        return reach.is_reached
