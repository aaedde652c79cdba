"""Breadth first search over millions of edges, wide or deep.

A level with many edges is one batch of NumPy calls; a stretch of levels with few is a plain loop,
so that a chain of 100,000 objects does not cost 100,000 batches.
"""

from __future__ import annotations

import numpy as np

from leakscope.heap.arrays import Booleans, Indices, Numbers, Octets, edges_of

NARROW = 200
"""Below so many edges a level a plain loop is faster than a batch of NumPy calls."""

ROOT = -1
"""Parent of what a search begins at."""


class Reach:
    """What has been reached so far, in the order of finding it.

    A *position* is a place in that order. `ranks` says of each edge how good a name it gives; a
    search follows those up to a rank. A node is searched from in the order of positions, so any
    stretch of positions can be one batch, and the result is that of a plain queue.
    """

    def __init__(self, starts: Numbers, targets: Indices, ranks: Octets) -> None:
        count = len(starts) - 1
        self._starts, self._targets, self._ranks = starts, targets, ranks
        self._slots: Indices = np.zeros(count, np.int32)
        self.is_reached: Booleans = np.zeros(count, np.bool_)
        self.nodes: Indices = np.empty(count, np.int32)
        self.parents: Indices = np.empty(count, np.int32)
        """Position of the one that leads to it."""
        self.edges: Numbers = np.empty(count, np.int64)
        """The edge it was found by; of one that a search began at, what `begin` was told."""
        self.count = 0
        self.wide_levels: list[tuple[int, int]] = []
        """Ranges of positions whose parents are all before them; all others are in between."""

    def begin(self, nodes: Indices, marks: Numbers) -> None:
        """Take nodes that need no parent; those reached already keep the one they have."""
        self._take(nodes, np.full(len(nodes), ROOT, np.int32), marks)

    def follow(self, begin: int, rank: int) -> None:
        """Search on from the positions from `begin` on, along edges up to `rank`."""
        while begin < self.count:
            end = self.count
            if end - begin > NARROW or self._edge_count(begin, end) > NARROW:
                self._level(begin, end, rank)
                begin = end
            else:
                begin = self._walk(begin, rank)

    def follow_again(self, rank: int) -> None:
        """Go on from everything reached, along the edges of exactly this rank."""
        edges = np.flatnonzero(self._ranks == rank)
        edges = edges[~self.is_reached[self._targets[edges]]]
        sources = np.searchsorted(self._starts, edges, side="right") - 1
        is_ready = self.is_reached[sources]
        edges, sources = edges[is_ready], sources[is_ready]
        places = np.empty(len(self._slots), np.int32)
        places[self.nodes[: self.count]] = np.arange(self.count, dtype=np.int32)
        parents = places[sources]
        order = np.argsort(parents, kind="stable")
        begin = self.count
        self._take(self._targets[edges[order]], parents[order], edges[order])
        self.follow(begin, rank)

    def _edge_count(self, begin: int, end: int) -> int:
        nodes = self.nodes[begin:end]
        return int((self._starts[nodes + 1] - self._starts[nodes]).sum())

    def _level(self, begin: int, end: int, rank: int) -> None:
        edges, ends = edges_of(self._starts, self.nodes[begin:end])
        nodes = self._targets[edges]
        is_wanted = ~self.is_reached[nodes]
        is_wanted &= self._ranks[edges] <= rank
        wanted = np.flatnonzero(is_wanted)
        parents = begin + np.searchsorted(ends, wanted, side="right")
        self._take(nodes[wanted], parents.astype(np.int32), edges[wanted])

    def _take(self, nodes: Indices, parents: Indices, edges: Numbers) -> None:
        """Add those not reached yet, each with the first edge that leads to it."""
        wanted = np.flatnonzero(~self.is_reached[nodes])
        self._slots[nodes[wanted[::-1]]] = wanted[::-1]
        wanted = wanted[self._slots[nodes[wanted]] == wanted]
        begin, end = self.count, self.count + len(wanted)
        self.nodes[begin:end] = nodes[wanted]
        self.parents[begin:end] = parents[wanted]
        self.edges[begin:end] = edges[wanted]
        self.is_reached[nodes[wanted]] = True
        self.count = end
        if end > begin:
            self.wide_levels.append((begin, end))

    def _walk(self, begin: int, rank: int) -> int:
        """Search in a plain loop while there are few edges; the position to go on from."""
        starts, targets = self._starts.data, self._targets.data
        ranks, is_reached = self._ranks.data, self.is_reached.data
        queue = self.nodes[begin : self.count].tolist()
        already = len(queue)
        parents: list[int] = []
        edges: list[int] = []
        done = 0
        for node in queue:  # which grows meanwhile
            low, high = starts[node], starts[node + 1]
            if high - low > NARROW or len(queue) - done > NARROW:
                break
            for edge in range(low, high):
                target = targets[edge]
                if not is_reached[target] and ranks[edge] <= rank:
                    is_reached[target] = True
                    queue.append(target)
                    parents.append(begin + done)
                    edges.append(edge)
            done += 1
        first = self.count
        self.count += len(edges)
        self.nodes[first : self.count] = queue[already:]
        self.parents[first : self.count] = parents
        self.edges[first : self.count] = edges
        return begin + done
