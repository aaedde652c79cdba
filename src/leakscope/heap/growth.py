"""Find what grows: the highest object group with more and more members under one without.

A group grows if it did so from each snapshot to the next and has not come to rest. What is in
flight when a snapshot is taken goes up and down, and what is made once grows once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from math import log

import numpy as np

from leakscope.heap.aligned import Aligned
from leakscope.heap.arrays import Booleans, Numbers
from leakscope.heap.groups import Groups
from leakscope.heap.growing import Growing, Growth
from leakscope.heap.hidden_items import HiddenItems
from leakscope.heap.measure import ANONYMOUS, Measure
from leakscope.heap.newcomers import bytes_of_new_members
from leakscope.record.snapshot_file import EdgeRole

__all__ = ["Growing", "Growth", "find_growth", "grown"]

SLOWEST = 4
"""A group whose last rate is less than this part of its fastest has come to rest. One of few events
that falls on either side of a snapshot changes a rate by a factor of two or three."""

UNEVEN = 16
"""A group whose slowest rate is less than this part of its fastest did not grow with the steps."""

MOST = 40
"""So many are told apart, the largest first; what is smaller counts as the rest."""

_WORTH_A_TEST = 100
"""Growth below this part of all growth is taken as it is, without a look at its members."""

_FEWEST = 2


def grown(snapshots: Sequence[Groups], steps: Sequence[int]) -> list[Growing]:
    """What grows, the largest first."""
    return find_growth(snapshots, steps).growing


def find_growth(snapshots: Sequence[Groups], steps: Sequence[int]) -> Growth:
    """Compare two or more snapshots of one process, taken at these steps."""
    if len(snapshots) < _FEWEST:
        raise ValueError("growth is between two snapshots or more")
    aligned = Aligned(snapshots)
    finder = _Finder(aligned, steps)
    measure = Measure(aligned, steps)
    items = list(finder.items())
    hidden = HiddenItems(aligned, [row for rows in items for row in rows])
    insides = hidden.rows()
    found = [measure.items(rows, hidden) for rows in items if not insides.intersection(rows)]
    found += [measure.one(row) for row in finder.larger()]
    found = [one for one in found if one.bytes_grown > 0]
    found = sorted(found, key=lambda one: -one.bytes_grown)[:MOST]
    told = sum(one.bytes_grown for one in found)
    rest = int(aligned.below[-1, 0] - aligned.below[0, 0]) - told
    total = max(told + max(rest, 0), 1)
    return Growth(
        growing=[replace(one, share=one.bytes_grown / total) for one in found],
        visible=tuple(zip(steps, aligned.below[:, 0].tolist(), strict=True)),
        rest_bytes=rest,
    )


class _Finder:
    """Which rows grow."""

    def __init__(self, aligned: Aligned, steps: Sequence[int]) -> None:
        self._aligned = aligned
        self._distances = np.maximum(np.diff(np.array(steps, np.int64)), 1)[:, None]
        self._grown: Numbers = aligned.below[-1] - aligned.below[0]
        self._total = max(1, int(self._grown[0]))
        self._is_told, self._is_covered = self._tell()

    def items(self) -> Iterator[list[int]]:
        """Rows with more and more members. Items of one container are one thing that grows, and so
        are the nodes of one graph; each attribute is its own."""
        told = sorted(np.flatnonzero(self._is_told).tolist(), key=self._sibling_key)
        for _, rows in groupby(told, key=self._sibling_key):
            yield list(rows)

    def larger(self) -> list[int]:
        """Rows whose members themselves get larger: a longer container, a larger array. Not those
        whose items were told, or that are part of something that was."""
        aligned = self._aligned
        size = np.where(aligned.is_plain, aligned.lengths, aligned.bytes)
        each = size / np.maximum(aligned.counts, 1)
        found = self._grows(size) & (np.diff(each, axis=0) > 0).all(axis=0)
        found &= ~self._is_told & ~self._is_covered
        told = np.flatnonzero(self._is_told)
        found[aligned.parents[told[np.isin(aligned.roles[told], ANONYMOUS)]]] = False
        rows: list[int] = np.flatnonzero(found).tolist()
        return rows

    def _grows(self, values: Numbers) -> Booleans:
        """Whether each row rose from each snapshot to the next, and has not come to rest."""
        more = np.diff(values, axis=0)
        rates = more / self._distances
        fastest = rates.max(axis=0)
        found: Booleans = (more > 0).all(axis=0) & (rates[-1] * SLOWEST >= fastest)
        found &= rates.min(axis=0) * UNEVEN >= fastest
        return found

    def _tell(self) -> tuple[Booleans, Booleans]:
        """The highest rows with more and more members; and everything below them."""
        aligned = self._aligned
        is_more = self._grows(aligned.counts) & (np.diff(aligned.below, axis=0) > 0).all(axis=0)
        is_told = np.zeros(len(aligned.parents), np.bool_)
        is_covered = np.zeros_like(is_told)
        for level in aligned.levels:
            parents = aligned.parents[level]
            is_covered[level] = is_covered[parents] | is_told[parents]
            for row in level[~is_covered[level] & is_more[level]].tolist():
                is_told[row] = self._is_by_number(row)
        return is_told, is_covered

    def _is_by_number(self, row: int) -> bool:
        """Whether growth in number accounts for the growth in bytes: more so than growth of each
        member, or because new members keep at least half of it. Otherwise old members get larger,
        and the cause is further down."""
        aligned, grown_bytes = self._aligned, int(self._grown[row])
        first, last = int(aligned.counts[0, row]), int(aligned.counts[-1, row])
        if grown_bytes * _WORTH_A_TEST < self._total or not first:
            return True
        before, after = int(aligned.below[0, row]), int(aligned.below[-1, row])
        if 2 * log(last / first) >= log(after / max(before, 1)):
            return True
        return 2 * bytes_of_new_members(aligned, row) >= grown_bytes

    def _sibling_key(self, row: int) -> tuple[int, int]:
        is_one_of_many = int(self._aligned.roles[row]) in (*ANONYMOUS, EdgeRole.NEXT)
        return int(self._aligned.parents[row]), -1 if is_one_of_many else row
