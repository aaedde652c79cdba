"""Retained bytes: what would be freed if something were.

Of one set of objects it is exact and fast on the whole graph (search from the roots around them).
The dominator tree gives it for every node at once, in plain loops: for small heaps, and for the
merged graph of a large one, where groups too small to show are part of the group above.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leakscope.heap.arrays import AnyArray, Indices, Numbers
from leakscope.heap.dominators import NOBODY, find_dominators
from leakscope.heap.groups import TOP, Groups, levels_of
from leakscope.heap.reach import Reach
from leakscope.heap.roots import find_roots
from leakscope.heap.snapshot import HeapSnapshot

SMALLEST_PART = 1000
"""A group with less than this part of all bytes below it is not shown by itself."""


class RetainedGroup(NamedTuple):
    """A group and what it alone keeps alive."""

    group: int
    above: int
    """Index in the list of the group that dominates it; -1 for none."""
    bytes: int


def retained_by(snapshot: HeapSnapshot, nodes: AnyArray) -> int:
    """Bytes that no root leads to but through these nodes, their own included."""
    roots = find_roots(snapshot)
    starts = [stage.nodes for stage in (*roots.stages, roots.ours)]
    all_roots = np.concatenate(starts)
    reachable = _reached(snapshot, all_roots, np.empty(0, np.int64))
    around = _reached(snapshot, all_roots, nodes)
    return int(snapshot.bytes[reachable & ~around].sum())


def retained_bytes(
    starts: Numbers, targets: Indices, roots: AnyArray, own_bytes: Numbers
) -> Numbers:
    """What each node retains; 0 for one that is not reached."""
    dominators = find_dominators(starts, targets, roots)
    is_reached = dominators >= NOBODY
    total = np.where(is_reached, own_bytes, 0)
    above = np.concatenate([[-1], np.where(is_reached, dominators + 1, 0)]).astype(np.int32)
    for level in reversed(levels_of(above)):
        has_one = level[above[level] > 0]
        np.add.at(total, above[has_one] - 1, total[has_one - 1])
    return total


def retained_groups(snapshot: HeapSnapshot, groups: Groups) -> list[RetainedGroup]:
    """The dominator tree of the groups that are large enough to show, the largest first."""
    shown, of_group = _large(groups)
    members = groups.members
    of_node = np.full(snapshot.count, -1, np.int32)
    of_node[members.nodes] = of_group[members.groups]
    sources, targets = of_node[snapshot.sources()], of_node[snapshot.targets]
    is_between = (sources >= 0) & (targets >= 0) & (sources != targets)
    count = len(shown)
    keys = np.unique(sources[is_between].astype(np.int64) * count + targets[is_between])
    starts = np.searchsorted(keys, np.arange(count + 1) * count)
    roots = np.unique(of_group[members.groups[members.parents < 0]])
    own = np.bincount(of_group, weights=groups.bytes, minlength=count).astype(np.int64)
    leads = (keys % count).astype(np.int32)
    dominators = find_dominators(starts, leads, roots)
    total = retained_bytes(starts, leads, roots, own)
    order = np.argsort(-total, kind="stable")
    order = order[(total[order] > 0) & (shown[order] != TOP)]
    places = np.full(count + 1, NOBODY)
    places[order] = np.arange(len(order))
    return [
        RetainedGroup(int(shown[at]), int(places[max(int(dominators[at]), -1)]), int(total[at]))
        for at in order.tolist()
    ]


def _large(groups: Groups) -> tuple[Numbers, Numbers]:
    """Groups with enough below them; and for each group, the index of the one it counts with."""
    below = groups.bytes.copy()
    levels = levels_of(groups.parents)
    for level in reversed(levels):
        np.add.at(below, groups.parents[level], below[level])
    is_large = below * SMALLEST_PART >= below[0]
    shown = np.flatnonzero(is_large)
    of_group = np.full(len(groups), -1, np.int64)
    of_group[shown] = np.arange(len(shown))
    for level in levels:
        small = level[~is_large[level]]
        of_group[small] = of_group[groups.parents[small]]
    return shown, of_group


def _reached(snapshot: HeapSnapshot, roots: Indices, around: AnyArray) -> AnyArray:
    reach = Reach(snapshot.starts, snapshot.targets, np.zeros(len(snapshot.targets), np.uint8))
    reach.is_reached[around] = True
    reach.begin(roots, np.zeros(len(roots), np.int64))
    reach.follow(0, 0)
    reach.is_reached[around] = False
    return reach.is_reached
