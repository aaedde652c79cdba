"""Immediate dominators of a graph (SEMI-NCA, Georgiadis 2005), in plain lists.

A node is dominated by what every path from a root to it goes through: freeing that frees it too.
"""

from __future__ import annotations

import numpy as np

from leakscope.heap.arrays import AnyArray, Indices, Numbers, edges_of

NOT_REACHED = -2
NOBODY = -1
"""Several roots lead to it, or it is one itself."""


def find_dominators(starts: Numbers, targets: Indices, roots: AnyArray) -> Indices:
    """The immediate dominator of each node, or `NOBODY`, or `NOT_REACHED`."""
    order, parents = _preorder(starts, targets, roots)
    count = len(order) + 1
    numbers = np.full(len(starts) - 1, 0, np.int64)
    numbers[order] = np.arange(1, count)
    sources, bounds = _predecessors(starts, targets, roots, order, numbers)
    semi = list(range(count))
    best = list(range(count))
    ancestors = [NOBODY] * count
    dominators = parents[:]
    for node in range(count - 1, 0, -1):
        lowest = parents[node]
        for source in sources[bounds[node] : bounds[node + 1]]:
            if source > node:
                _compress(source, ancestors, best, semi)
                lowest = min(lowest, semi[best[source]])
            else:
                lowest = min(lowest, semi[source])
        semi[node] = lowest
        ancestors[node] = parents[node]
    for node in range(1, count):
        above = dominators[node]
        while above > semi[node]:
            above = dominators[above]
        dominators[node] = above
    found = np.full(len(starts) - 1, NOT_REACHED, np.int32)
    names = np.concatenate([[NOBODY], order])
    found[order] = names[np.array(dominators[1:], np.int64)]
    return found


def _preorder(starts: Numbers, targets: Indices, roots: AnyArray) -> tuple[Numbers, list[int]]:
    """Nodes in the order of a depth first search, and each one's parent by its number there; number
    0 is above the roots."""
    begins, ends, leads = starts[:-1].tolist(), starts[1:].tolist(), targets.tolist()
    is_seen = bytearray(len(begins))
    order: list[int] = []
    parents = [0]
    for root in roots.tolist():
        if is_seen[root]:
            continue
        is_seen[root] = True
        order.append(root)
        parents.append(0)
        stack = [(root, len(order))]
        while stack:
            node, number = stack[-1]
            at, end = begins[node], ends[node]
            while at < end and is_seen[leads[at]]:
                at += 1
            begins[node] = at + 1
            if at >= end:
                stack.pop()
                continue
            child = leads[at]
            is_seen[child] = True
            order.append(child)
            parents.append(number)
            stack.append((child, len(order)))
    return np.array(order, np.int64), parents


def _predecessors(
    starts: Numbers, targets: Indices, roots: AnyArray, order: Numbers, numbers: Numbers
) -> tuple[list[int], list[int]]:
    """Numbers of the nodes that refer to each node, and where each node's begin."""
    edges, ends = edges_of(starts, order)
    sources = np.searchsorted(ends, np.arange(len(edges)), side="right") + 1
    leads = numbers[targets[edges]]
    sources = np.concatenate([sources, np.zeros(len(roots), np.int64)])
    leads = np.concatenate([leads, numbers[roots]])
    by_lead = np.argsort(leads, kind="stable")
    bounds = np.searchsorted(leads[by_lead], np.arange(len(order) + 2))
    return sources[by_lead].tolist(), bounds.tolist()


def _compress(node: int, ancestors: list[int], best: list[int], semi: list[int]) -> None:
    """Make each node on the way up know the lowest semidominator there."""
    way = []
    while ancestors[node] != NOBODY and ancestors[ancestors[node]] != NOBODY:
        way.append(node)
        node = ancestors[node]
    for one in reversed(way):
        above = ancestors[one]
        if semi[best[above]] < semi[best[one]]:
            best[one] = best[above]
        ancestors[one] = ancestors[above]
