"""Give each step of each path its group: the same (group of the step before, label, type) is one.

A step that came before on the same path is not a new group but that one, so that a chain of any
length is one group. Lists within lists are told apart first, up to `NESTED` levels: a program that
indexes `table[a][b][c]` means three different things. Nodes of an autograd graph are groups by type
below the node that the graph begins at: in which order a search finds them says nothing.
"""

from __future__ import annotations

from itertools import repeat

import numpy as np

from leakscope.heap.arrays import AnyArray, Booleans, Indices, Numbers, Words
from leakscope.heap.labels import role_of, roles_of
from leakscope.record.snapshot_file import EdgeRole

NESTED = 4
"""Plain containers in plain containers are levels that a programmer tells apart up to here; what
repeats more often is a chain made of tuples, lists or dicts."""

_FIRST_FRAMEWORK_ROLE = int(EdgeRole.STORAGE)
"""Nodes of autograd graphs repeat whatever node is between them."""

_GROUP, _LABEL, _KIND = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
"""Odd numbers with random bits: a sum of multiples of them is a hash of the three factors."""

_MASK = (1 << 64) - 1
_NEXT = int(EdgeRole.NEXT)
_ITEMS = (int(EdgeRole.ITEM), int(EdgeRole.KEY))
_NONE = -1


class Merger:
    """Groups while they are put together. Group 0 is above all roots."""

    def __init__(self, is_plain: Booleans) -> None:
        self._is_plain = is_plain
        """Of each kind: a container of Python's own."""
        self._known: dict[int, int] = {}
        self.count = 1
        self.parents: Indices = np.zeros(1024, np.int32)
        self.labels: Numbers = np.zeros(1024, np.int64)
        self.kinds: Indices = np.full(1024, _NONE, np.int32)
        self._folds: Words = np.zeros(1024, np.uint64)
        self.samples: Indices = np.zeros(1024, np.int32)
        self.is_folded: Booleans = np.zeros(1024, np.bool_)
        """Steps that come again further down are in the group too: it is a chain or a tree."""
        self.parents[0] = _NONE
        self.samples[0] = _NONE

    def merge_batch(
        self, positions: Indices, above: Indices, labels: Numbers, kinds: Indices
    ) -> Indices:
        """The group of each of many positions; `above` are the groups of the steps before."""
        is_next = (roles_of(labels) == _NEXT) & (roles_of(self.labels[above]) == _NEXT)
        above = np.where(is_next, self.parents[above], above)
        keys = _hash(above, labels, kinds)
        heads = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        found = np.array(list(map(self._known.get, keys[heads].tolist(), repeat(_NONE))), np.int32)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            at = heads[missing]
            wanted, first, inverse = np.unique(keys[at], return_index=True, return_inverse=True)
            order = np.argsort(first)
            at = at[first[order]]
            groups = self._add(positions[at], above[at], labels[at], kinds[at])
            numbers = np.empty(len(wanted), np.int32)
            numbers[order] = groups
            self._known.update(zip(wanted.tolist(), numbers.tolist(), strict=True))
            found[missing] = numbers[inverse]
        sizes = np.diff(np.concatenate([heads, [len(keys)]]))
        return np.repeat(found, sizes)

    def merge_one(self, position: int, above: int, label: int, kind: int) -> int:
        """The group of one position."""
        if role_of(label) == _NEXT and role_of(int(self.labels[above])) == _NEXT:
            above = int(self.parents[above])
        key = (above * _GROUP + label * _LABEL + kind * _KIND) & _MASK
        group = self._known.get(key)
        if group is None:
            group = self._known[key] = self._add_one(position, above, label, kind)
        return group

    def _add_one(self, position: int, above: int, label: int, kind: int) -> int:
        """The same as `_add`, for one step: a plain loop is faster than a batch of one."""
        outer, role = int(self.kinds[above]), role_of(label)
        is_nested = role in _ITEMS and bool(self._is_plain[kind]) and bool(self._is_plain[outer])
        if role >= _FIRST_FRAMEWORK_ROLE:
            outer = 0
        fold = (outer * _GROUP + label * _LABEL + kind * _KIND) & _MASK
        parents, folds = self.parents.data, self._folds.data
        found, seen, at = _NONE, 0, above
        while at > 0:
            if folds[at] == fold:
                found = at
                seen += 1
            at = parents[at]
        if seen >= (NESTED if is_nested else 1):
            self.is_folded[found] = True
            self._known[(found * _GROUP + label * _LABEL + kind * _KIND) & _MASK] = found
            return found
        group = self.count
        self._grow(group + 1)
        self.parents[group], self.labels[group], self.kinds[group] = above, label, kind
        self._folds[group], self.samples[group] = fold, position
        self.count += 1
        return group

    def _add(
        self, positions: AnyArray, above: AnyArray, labels: AnyArray, kinds: AnyArray
    ) -> Indices:
        """New groups for steps that are no group yet; or the group that a step folds into."""
        roles = roles_of(labels)
        is_nested = self._is_plain[kinds] & self._is_plain[self.kinds[above]]
        is_nested &= np.isin(roles, _ITEMS)
        outer = np.where(roles >= _FIRST_FRAMEWORK_ROLE, 0, self.kinds[above])
        folds = _hash(outer, labels, kinds)
        groups = self._find_fold(above, folds, np.where(is_nested, NESTED, 1))
        folded = np.flatnonzero(groups >= 0)
        self.is_folded[groups[folded]] = True
        # From here on such a chain stays in its first group: it goes through no levels again.
        again = _hash(groups[folded], labels[folded], kinds[folded])
        self._known.update(zip(again.tolist(), groups[folded].tolist(), strict=True))
        new = np.flatnonzero(groups < 0)
        begin, end = self.count, self.count + len(new)
        self._grow(end)
        groups[new] = np.arange(begin, end)
        self.parents[begin:end] = above[new]
        self.labels[begin:end] = labels[new]
        self.kinds[begin:end] = kinds[new]
        self._folds[begin:end] = folds[new]
        self.samples[begin:end] = positions[new]
        self.count = end
        return groups

    def _find_fold(self, above: AnyArray, folds: Words, needed: AnyArray) -> Indices:
        """The first group on the way down to each that has the same step, if there are enough."""
        found = np.full(len(folds), _NONE, np.int32)
        seen = np.zeros(len(folds), np.int32)
        left = np.arange(len(folds))
        at = above.copy()
        while len(left):
            hit = left[self._folds[at] == folds[left]]
            seen[hit] += 1
            found[hit] = at[self._folds[at] == folds[left]]
            at = self.parents[at]
            is_more = at > 0
            left, at = left[is_more], at[is_more]
        found[seen < needed] = _NONE
        return found

    def _grow(self, count: int) -> None:
        if count <= len(self.parents):
            return
        for name in ("parents", "labels", "kinds", "_folds", "samples", "is_folded"):
            old = getattr(self, name)
            new = np.zeros(2 * count, old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)


def merge_steps(
    merger: Merger,
    parents: Indices,
    labels: Numbers,
    kinds: Indices,
    is_through: Booleans,
    batches: list[tuple[int, int]],
) -> Indices:
    """The group of each position; of a part that is seen through, the group it is part of."""
    groups: Indices = np.zeros(len(parents) + 1, np.int32)  # the last one is above the roots
    end = 0
    for begin, stop in [*batches, (len(parents), len(parents))]:
        if begin > end:
            _merge_few(merger, groups, slice(end, begin), parents, labels, kinds, is_through)
        positions = begin + np.flatnonzero(~is_through[begin:stop]).astype(np.int32)
        if len(positions):
            above = groups[parents[positions]]
            groups[positions] = merger.merge_batch(
                positions, above, labels[positions], kinds[positions]
            )
        end = stop
    through = np.flatnonzero(is_through)
    groups[through] = groups[parents[through]]
    return groups[:-1]


def _merge_few(
    merger: Merger,
    groups: Indices,
    where: slice,
    parents: Indices,
    labels: Numbers,
    kinds: Indices,
    is_through: Booleans,
) -> None:
    first = where.start
    mine: list[int] = []
    above = groups[parents[where]].tolist()
    rows = zip(
        parents[where].tolist(),
        labels[where].tolist(),
        kinds[where].tolist(),
        is_through[where].tolist(),
        above,
        strict=True,
    )
    merge = merger.merge_one
    for number, (parent, label, kind, through, known) in enumerate(rows):
        outer = mine[parent - first] if parent >= first else known
        mine.append(outer if through else merge(first + number, outer, label, kind))
    groups[where] = mine


def _hash(first: AnyArray, labels: AnyArray, kinds: AnyArray) -> Words:
    total: Words = first.astype(np.uint64) * np.uint64(_GROUP)
    total += labels.astype(np.uint64) * np.uint64(_LABEL)
    total += kinds.astype(np.uint64) * np.uint64(_KIND)
    return total


def path_of(parents: Indices, group: int) -> list[int]:
    """The groups from a root down to this one."""
    path = []
    while group > 0:
        path.append(group)
        group = int(parents[group])
    path.reverse()
    return path
