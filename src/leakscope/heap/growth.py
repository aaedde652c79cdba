"""Find what grows: the highest object group with more and more members under one without.

A group grows if it did so from each snapshot to the next and has not come to rest. What is in
flight when a snapshot is taken goes up and down, and what is made once grows once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from leakscope.heap.aligned import Aligned
from leakscope.heap.arrays import Booleans, Numbers
from leakscope.heap.groups import Groups
from leakscope.heap.newcomers import bytes_of_new_members, new_addresses
from leakscope.heap.see_through import ROOT_ROLE, Part
from leakscope.record.snapshot_file import EdgeRole

SLOWEST = 4
"""A group whose last rate is less than this part of its fastest has come to rest. One of few events
that falls on either side of a snapshot changes a rate by a factor of two or three."""

MOST = 40
"""So many are told apart, the largest first; what is smaller counts as the rest."""

_WORTH_A_TEST = 100
"""Growth below this part of all growth is taken as it is, without a look at its members."""

_ANONYMOUS = (EdgeRole.ITEM, EdgeRole.KEY, EdgeRole.ELEMENT)
_FIRST_FRAMEWORK_ROLE = int(EdgeRole.STORAGE)


@dataclass(frozen=True, slots=True)
class Growing:
    """Something that has more members, or larger ones, in each snapshot."""

    groups: Groups
    """Of the last snapshot; `path` is of its groups."""
    kind: str
    """container, graph, chain, array (one thing that gets larger), cycle (garbage), or native (held
    by native code)."""
    path: tuple[int, ...]
    """Groups from a root to the holder, the item, and on to where most of the bytes are."""
    holder: int
    """Index in `path` of what holds the items, and does not grow in number."""
    item: int
    """Index in `path` of the items; the same as `holder` where that itself gets larger."""
    counts: tuple[tuple[int, int], ...]
    """(step, how many items), snapshot by snapshot."""
    bytes: tuple[tuple[int, int], ...]
    """(step, bytes of the items and all that is below them, with the holder's own table)."""
    parts: dict[str, int]
    """Bytes grown: python, arrays, tensors, saved, nodes, shared memory."""
    devices: dict[str, int]
    """Of these, in the memory of devices."""
    holders: int
    """How many things of the holder's description there are; `counts` is their sum."""
    limit: int | None
    """The most items that the holders can have together, if they say so."""
    addresses: tuple[int, ...]
    """Some of the items of the last snapshot, the newest where that can be told."""
    share: float
    """Of all growth that the snapshots show."""

    @property
    def bytes_grown(self) -> int:
        return self.bytes[-1][1] - self.bytes[0][1]

    @property
    def items_grown(self) -> int:
        return self.counts[-1][1] - self.counts[0][1]

    @property
    def bytes_per_item(self) -> float:
        """What one more item keeps; 0 where one thing gets larger."""
        more = self.items_grown
        return self.bytes_grown / more if more > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Growth:
    """All that grew from the first snapshot to the last."""

    growing: list[Growing]
    """The largest first."""
    visible: tuple[tuple[int, int], ...]
    """(step, bytes of everything that the snapshot shows)."""
    rest_bytes: int
    """Growth that is none of these: in flight, made once, or small. Negative if it fell."""


def grown(snapshots: Sequence[Groups], steps: Sequence[int]) -> list[Growing]:
    """What grows, the largest first."""
    return find_growth(snapshots, steps).growing


def find_growth(snapshots: Sequence[Groups], steps: Sequence[int]) -> Growth:
    """Compare two or more snapshots of one process, taken at these steps."""
    if len(snapshots) < 2:
        raise ValueError("growth needs two snapshots")
    aligned = Aligned(snapshots)
    finder = _Finder(aligned, steps)
    total = int(aligned.below[-1, 0] - aligned.below[0, 0])
    found = sorted(finder.find(), key=lambda one: -one.bytes_grown)
    found = [one for one in found if one.bytes_grown > 0][:MOST]
    rest = total - sum(one.bytes_grown for one in found)
    all_growth = max(1, sum(one.bytes_grown for one in found) + max(rest, 0))
    return Growth(
        growing=[_with_share(one, one.bytes_grown / all_growth) for one in found],
        visible=tuple(zip(steps, aligned.below[:, 0].tolist(), strict=True)),
        rest_bytes=rest,
    )


class _Finder:
    def __init__(self, aligned: Aligned, steps: Sequence[int]) -> None:
        self._aligned = aligned
        self._steps = list(steps)
        self._last = aligned.snapshots[-1]
        self._distances = np.maximum(np.diff(np.array(steps, np.int64)), 1)[:, None]
        below = aligned.below
        self._grown: Numbers = below[-1] - below[0]
        self._total = max(1, int(self._grown[0]))
        self._is_more = self._grows(aligned.counts)

    def find(self) -> Iterator[Growing]:
        """Everything that grows, each thing once."""
        is_told, is_covered = self._tell_items()
        told = np.flatnonzero(is_told)
        keys = [self._sibling_key(row) for row in told.tolist()]
        order = sorted(range(len(told)), key=lambda at: keys[at])
        for _, siblings in groupby(order, key=lambda at: keys[at]):
            yield self._items([int(told[at]) for at in siblings])
        has_items = np.zeros(len(is_told), np.bool_)
        is_anonymous = np.array([key[1] < 0 for key in keys], np.bool_)
        has_items[self._aligned.parents[told[is_anonymous]]] = True
        for row in np.flatnonzero(self._is_larger() & ~is_told & ~is_covered & ~has_items).tolist():
            yield self._one(row)

    def _grows(self, values: Numbers) -> Booleans:
        """Whether each row rose from each snapshot to the next, and has not come to rest."""
        more = np.diff(values, axis=0)
        rates = more / self._distances
        found: Booleans = (more > 0).all(axis=0) & (rates[-1] * SLOWEST >= rates.max(axis=0))
        return found

    def _is_larger(self) -> Booleans:
        """Rows whose members themselves get larger: longer containers, larger arrays."""
        aligned = self._aligned
        kinds = self._last.kinds[np.maximum(aligned.last_groups, 0)]
        is_plain = ((self._last.parts[kinds] & Part.PLAIN) != 0) & (aligned.last_groups > 0)
        size = np.where(is_plain, aligned.lengths, aligned.bytes)
        each = size / np.maximum(aligned.counts, 1)
        found: Booleans = self._grows(size) & (np.diff(each, axis=0) > 0).all(axis=0)
        return found

    def _tell_items(self) -> tuple[Booleans, Booleans]:
        """The highest rows with more and more members; and everything below them."""
        aligned = self._aligned
        is_told = np.zeros(len(aligned.parents), np.bool_)
        is_covered = np.zeros_like(is_told)
        for level in aligned.levels:
            parents = aligned.parents[level]
            is_covered[level] = is_covered[parents] | is_told[parents]
            open_ = level[~is_covered[level] & self._is_more[level] & (self._grown[level] > 0)]
            for row in open_.tolist():
                is_told[row] = self._is_by_number(row)
        return is_told, is_covered

    def _is_by_number(self, row: int) -> bool:
        """Whether new members account for at least half of the growth, or old ones that get larger:
        then the cause is further down."""
        grown_bytes = int(self._grown[row])
        if grown_bytes * _WORTH_A_TEST < self._total or not self._aligned.counts[0, row]:
            return True
        return 2 * bytes_of_new_members(self._aligned, row) >= grown_bytes

    def _label(self, row: int) -> tuple[int, str]:
        return self._last.label(int(self._aligned.last_groups[row]))

    def _sibling_key(self, row: int) -> tuple[int, int]:
        """Items of one holder are one thing that grows; each attribute is its own."""
        role, _ = self._label(row)
        return int(self._aligned.parents[row]), -1 if role in _ANONYMOUS else row

    # ── one thing that grows ──

    def _items(self, rows: list[int]) -> Growing:
        aligned = self._aligned
        rows.sort(key=lambda row: -int(self._grown[row]))
        main = rows[0]
        parent = int(aligned.parents[main])
        path = aligned.path(main)
        item = len(path) - 1
        holder = self._holder_index(path, item)
        is_list = parent > 0 and self._is_plain(parent) and self._label(main)[0] in _ANONYMOUS
        counts, own = self._counts(rows, parent if is_list else 0), parent if is_list else 0
        per_snapshot = aligned.below[:, rows].sum(axis=1) + (aligned.bytes[:, own] if own else 0)
        return self._growing(
            self._kind(path, item),
            (*path, *self._further(main)),
            (holder, item),
            counts,
            per_snapshot,
            (rows, own),
        )

    def _one(self, row: int) -> Growing:
        """One thing that gets larger."""
        aligned = self._aligned
        path = aligned.path(row)
        at = len(path) - 1
        is_list = self._is_plain(row)
        sizes = aligned.lengths if is_list else aligned.counts
        kind = "container" if is_list else "array"
        if self._root_kind(path[0]) in ("garbage", "native"):
            kind = self._kind(path, at)
        counts = [int(value) for value in sizes[:, row]]
        return self._growing(kind, tuple(path), (at, at), counts, aligned.bytes[:, row], ([], row))

    def _growing(
        self,
        kind: str,
        path: tuple[int, ...],
        places: tuple[int, int],
        counts: list[int],
        per_snapshot: Numbers,
        rows: tuple[list[int], int],
    ) -> Growing:
        aligned, steps = self._aligned, self._steps
        items, own = rows
        parts, devices = self._parts(items, own, int(per_snapshot[-1] - per_snapshot[0]))
        holder_row = path[places[0]]
        return Growing(
            groups=self._last,
            kind=kind,
            path=tuple(int(aligned.last_groups[row]) for row in path),
            holder=places[0],
            item=places[1],
            counts=tuple(zip(steps, counts, strict=True)),
            bytes=tuple(zip(steps, per_snapshot.tolist(), strict=True)),
            parts=parts,
            devices=devices,
            holders=int(aligned.counts[-1, holder_row]) if places[0] < places[1] else 1,
            limit=self._limit(holder_row),
            addresses=new_addresses(aligned, items or [own]),
            share=0.0,
        )

    def _is_plain(self, row: int) -> bool:
        kind = int(self._last.kinds[aligned_group(self._aligned, row)])
        return bool(self._last.parts[kind] & Part.PLAIN)

    def _counts(self, rows: list[int], container: int) -> list[int]:
        """How many items, snapshot by snapshot: entries of a container, else members."""
        aligned = self._aligned
        if container and (np.diff(aligned.lengths[:, container]) > 0).all():
            return [int(value) for value in aligned.lengths[:, container]]
        items = [row for row in rows if self._label(row)[0] != EdgeRole.KEY] or rows
        return [int(value) for value in aligned.counts[:, items].sum(axis=1)]

    def _holder_index(self, path: list[int], item: int) -> int:
        """The nearest step above that is the program's and not a graph's."""
        at = max(item - 1, 0)
        while at > 0 and self._label(path[at])[0] in range(_FIRST_FRAMEWORK_ROLE, ROOT_ROLE):
            at -= 1
        return at

    def _kind(self, path: list[int], item: int) -> str:
        root = self._root_kind(path[0])
        if root in ("garbage", "native"):
            return "cycle" if root == "garbage" else "native"
        role, _ = self._label(path[item])
        if _FIRST_FRAMEWORK_ROLE <= role < ROOT_ROLE:
            return "graph"
        group = aligned_group(self._aligned, path[item])
        is_chain = bool(self._last.is_folded[group]) and role not in _ANONYMOUS
        return "chain" if is_chain else "container"

    def _root_kind(self, row: int) -> str:
        members = self._last.members
        sample = int(self._last.samples[aligned_group(self._aligned, row)])
        return self._last.roots[int(members.roots[sample])].kind

    def _further(self, row: int) -> Iterator[int]:
        """Rows further down, as long as one has more than half of the growth."""
        while True:
            children = self._aligned.children(row)
            if not len(children):
                return
            child = int(children[np.argmax(self._grown[children])])
            if 2 * self._grown[child] <= self._grown[row] or self._aligned.last_groups[child] < 0:
                return
            yield child
            row = child

    def _parts(
        self, items: list[int], own: int, total: int
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Bytes grown by part, and those in the memory of devices."""
        parts: dict[str, int] = {}
        devices: dict[str, int] = {}
        for at, sign in ((0, -1), (-1, 1)):
            groups, rows = self._aligned.snapshots[at], self._aligned.rows[at]
            of = rows[groups.payload_groups]
            is_mine = of == own if own else np.zeros(len(of), np.bool_)
            for row in items:
                is_mine |= self._aligned.is_below(of, row)
            for number, size in zip(
                groups.payload_kinds[is_mine].tolist(),
                groups.payload_bytes[is_mine].tolist(),
                strict=True,
            ):
                part, device = groups.payload_names[number]
                parts[part] = parts.get(part, 0) + sign * size
                if device:
                    devices[device] = devices.get(device, 0) + sign * size
        parts["python"] = parts.get("python", 0) + total - sum(parts.values())
        return {k: v for k, v in parts.items() if v}, {k: v for k, v in devices.items() if v}

    def _limit(self, holder_row: int) -> int | None:
        """The sum of the limits of the holders, if each has one."""
        members, limits = self._last.members, self._last.meta.limits
        if not limits:
            return None
        group = aligned_group(self._aligned, holder_row)
        addresses = members.addresses[(members.groups == group) & ~members.is_part]
        found = [limits.get(address) for address in addresses.tolist()]
        known = [one for one in found if one is not None]
        return sum(known) if known and len(known) == len(found) else None


def aligned_group(aligned: Aligned, row: int) -> int:
    """The group of a row in the last snapshot."""
    return int(aligned.last_groups[row])


def _with_share(one: Growing, share: float) -> Growing:
    return replace(one, share=share)
