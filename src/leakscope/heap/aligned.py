"""The groups of several snapshots side by side: the same path is the same row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from leakscope.heap.arrays import AnyArray, Booleans, Indices, Numbers, Words
from leakscope.heap.groups import Groups, identify, levels_of
from leakscope.heap.labels import roles_of
from leakscope.heap.merge import path_of
from leakscope.heap.moved import follow_members
from leakscope.heap.see_through import Part
from leakscope.model import LinkKind

_NUMBER = re.compile(r"[0-9a-f]{8,}|\d+")
"""What tells one made-up name of a module from the next."""


class Aligned:
    """One row a path, one column a snapshot. Row 0 is above all roots."""

    def __init__(self, snapshots: Sequence[Groups]) -> None:
        self.snapshots = list(snapshots)
        *before, last_ids = _identities(snapshots)
        moved = [
            follow_members(groups, own, snapshots[-1], last_ids)
            for groups, own in zip(snapshots[:-1], before, strict=True)
        ]
        identities = np.concatenate([*moved, last_ids])
        found, inverse = np.unique(identities, return_inverse=True)
        size = len(found)
        ends = np.cumsum([len(groups) for groups in snapshots])
        self.rows: list[Numbers] = np.split(inverse, ends[:-1])
        """Row of each group, snapshot by snapshot."""
        self.parents: Indices = np.zeros(size, np.int32)
        self.last_groups: Indices = np.full(size, -1, np.int32)
        """The group in the last snapshot; -1 if it has none."""
        self.counts: Numbers = np.zeros((len(snapshots), size), np.int64)
        self.bytes: Numbers = np.zeros_like(self.counts)
        self.lengths: Numbers = np.zeros_like(self.counts)
        for at, groups in enumerate(snapshots):
            rows = self.rows[at]
            self.parents[rows] = rows[np.maximum(groups.parents, 0)]
            # Classes of the same name in two modules are one row.
            np.add.at(self.counts[at], rows, groups.counts)
            np.add.at(self.bytes[at], rows, groups.bytes)
            np.add.at(self.lengths[at], rows, groups.lengths)
        last = snapshots[-1]
        self.last_groups[self.rows[-1]] = np.arange(len(last))
        self.roles: Indices = np.full(size, -1, np.int32)
        """By which a row is reached; -1 if the last snapshot has it not."""
        self.roles[self.rows[-1]] = roles_of(last.labels)
        self.is_plain: Booleans = np.zeros(size, np.bool_)
        """Whether the members are containers of Python's own."""
        self.is_plain[self.rows[-1][1:]] = (last.parts[last.kinds[1:]] & Part.PLAIN) != 0
        self.levels = levels_of(self.parents)
        self.below: Numbers = self._sum_below()
        """Bytes of each row with everything below it."""
        self._order, self._bounds = self._by_parent()
        self._begin, self._size = self._intervals()

    def children(self, row: int) -> Numbers:
        return self._order[self._bounds[row] : self._bounds[row + 1]]

    def is_below(self, rows: AnyArray, top: int) -> Booleans:
        """Whether each row is `top` or below it."""
        begin = self._begin[rows]
        found: Booleans = begin >= self._begin[top]
        found &= begin < self._begin[top] + self._size[top]
        return found

    def path(self, row: int) -> list[int]:
        """The rows from a root down to this one."""
        path = []
        while row > 0:
            path.append(row)
            row = int(self.parents[row])
        path.reverse()
        return path

    def group_path(self, row: int) -> list[int]:
        """The groups of the last snapshot from a root down to the one of this row."""
        return path_of(self.snapshots[-1].parents, int(self.last_groups[row]))

    def group_of(self, at: int, row: int) -> int:
        """The group of a row in one snapshot; -1 if it has none."""
        found = np.flatnonzero(self.rows[at] == row)
        return int(found[0]) if len(found) else -1

    def _sum_below(self) -> Numbers:
        below = self.bytes.copy()
        for level in reversed(self.levels):
            for column in below:
                np.add.at(column, self.parents[level], column[level])
        return below

    def _by_parent(self) -> tuple[Numbers, Numbers]:
        """Rows sorted by parent, and where each parent's begin. The top is nobody's child."""
        order = np.argsort(self.parents, kind="stable")
        order = order[order != 0]
        bounds = np.searchsorted(self.parents[order], np.arange(len(self.parents) + 1))
        return order, bounds

    def _intervals(self) -> tuple[Numbers, Numbers]:
        """Numbers such that everything below a row is an interval."""
        size = np.ones(len(self.parents), np.int64)
        for level in reversed(self.levels):
            np.add.at(size, self.parents[level], size[level])
        begin = np.zeros_like(size)
        for unsorted in self.levels:
            level = unsorted[np.argsort(self.parents[unsorted], kind="stable")]
            parents = self.parents[level]
            before = np.cumsum(size[level]) - size[level]
            is_first = np.concatenate([[True], parents[1:] != parents[:-1]])
            firsts = np.flatnonzero(is_first)
            offset = np.repeat(before[firsts], np.diff(np.concatenate([firsts, [len(level)]])))
            begin[level] = begin[parents] + 1 + before - offset
        return begin, size


def _identities(snapshots: Sequence[Groups]) -> list[Words]:
    """The identity of each group. A program that loads more and more modules has a new root for
    each: those that have numbers in their names, and came later, count as one."""
    modules = [_numbered_modules(groups) for groups in snapshots]
    if any(len(after) <= len(before) for before, after in pairwise(modules)):
        return [groups.identities for groups in snapshots]
    found = []
    for groups, names in zip(snapshots, modules, strict=True):
        steps = groups.steps.copy()
        for name, group in names.items():
            if name not in modules[0]:
                steps[group] = np.uint64(hash(_NUMBER.sub("#", name)) & 0xFFFFFFFF)
        found.append(identify(groups.parents, steps))
    return found


def _numbered_modules(groups: Groups) -> dict[str, int]:
    """Roots that are modules with a number in the name."""
    found = {}
    for group in np.flatnonzero(groups.parents == 0).tolist():
        root = groups.root_of(group)
        if root.kind == LinkKind.MODULE and _NUMBER.search(root.name):
            found[root.name] = group
    return found
