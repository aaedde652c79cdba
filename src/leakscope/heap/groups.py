"""Object groups: objects that have the same path, without indices, are one.

What the analysis keeps of a snapshot: a few hundred thousand groups instead of millions of edges.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np

from leakscope.heap.array_table import ArrayTable
from leakscope.heap.arrays import AnyArray, Booleans, Indices, Numbers, Words
from leakscope.heap.blocks import blocks_of
from leakscope.heap.code_names import CodeNames
from leakscope.heap.labels import name_of, names_of, role_of, roles_of
from leakscope.heap.merge import Merger, merge_steps
from leakscope.heap.paths import Paths, find_paths
from leakscope.heap.roots import Root
from leakscope.heap.see_through import ROOT_ROLE, Part, Steps, find_steps, parts_of
from leakscope.heap.snapshot import HeapSnapshot, read_snapshot
from leakscope.heap.type_table import HeapType
from leakscope.record.snapshot_file import EdgeRole, SnapshotMeta

TOP = 0
"""The group above all roots."""

_ANONYMOUS = (EdgeRole.ITEM, EdgeRole.KEY, EdgeRole.ELEMENT)
_PRIME = 0x9E3779B97F4A7C15
_SHIFT = 29


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """The objects behind the groups, in the order they were found."""

    nodes: Indices
    addresses: Words
    groups: Indices
    is_part: Booleans
    """Python's own part of another object, which is not counted."""
    steps: Indices
    """Position of the step before; -1 for a root."""
    parents: Indices
    """Position of the object that refers to it; -1 for a root."""
    roots: Indices
    """Of each root, its index in `Groups.roots`; else -1."""
    bytes: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The object groups of one snapshot. Group 0 is above the roots, parents before children."""

    meta: SnapshotMeta
    parents: Indices
    labels: Numbers
    """Role and name; see `labels`."""
    kinds: Indices
    """Index in `kind_table`; -1 for group 0."""
    steps: Words
    """A hash of label and type, the same for the same texts in another snapshot."""
    identities: Words
    """A hash of the path, likewise."""
    counts: Numbers
    bytes: Numbers
    """Of the members themselves, with Python's own parts of them."""
    lengths: Numbers
    """How many items the members refer to."""
    block_counts: Numbers
    """Small blocks of Python's own allocator that the members take."""
    block_bytes: Numbers
    samples: Indices
    """Position of the first member."""
    is_folded: Booleans
    """Steps that come again further down are in the group too: it is a chain or a tree."""
    payload_groups: Indices
    payload_kinds: Indices
    payload_bytes: Numbers
    """Of `bytes`, what is not Python's own, by kind."""
    payload_names: list[tuple[str, str]]
    """(part, device)."""
    kind_table: list[HeapType]
    parts: AnyArray
    """What each kind is to a path: see `see_through.Part`."""
    roots: list[Root]
    members: Members
    names: list[str]
    codes: CodeNames
    arrays: ArrayTable
    our_bytes: int
    """What leakscope's own objects take, which are in no group."""

    def __len__(self) -> int:
        return len(self.parents)

    def label(self, group: int) -> tuple[int, str]:
        """Role and name by which a group is reached."""
        label = int(self.labels[group])
        return role_of(label), self.names[name_of(label)]

    def nodes_in(self, groups: Iterable[int]) -> Indices:
        """The objects of some groups."""
        wanted = np.zeros(len(self), np.bool_)
        wanted[list(groups)] = True
        found: Indices = self.members.nodes[wanted[self.members.groups]]
        return found

    def kind(self, group: int) -> HeapType:
        return self.kind_table[int(self.kinds[group])]

    def root_of(self, group: int) -> Root:
        """How a path begins, if this group is the first of it."""
        return self.roots[int(self.members.roots[self.samples[group]])]


def read_groups(path: Path) -> Groups | None:
    """Read a snapshot file and merge it into groups; None if it was cut short."""
    snapshot = read_snapshot(path)
    return None if snapshot is None else group_objects(snapshot)


def group_objects(snapshot: HeapSnapshot) -> Groups:
    """Merge the objects of a snapshot into groups by their paths."""
    paths = find_paths(snapshot)
    steps = find_steps(snapshot, paths)
    codes = CodeNames(snapshot)
    kinds, kind_table = _kinds(snapshot, paths, steps, codes)
    parts = parts_of(kind_table)
    merger = Merger((parts & Part.PLAIN) != 0)
    labels = steps.labels()
    of_position = merge_steps(merger, steps.parents, labels, kinds, steps.is_through, paths.batches)
    count = merger.count
    sizes = snapshot.bytes[paths.nodes]
    payload = _payload(snapshot, paths, of_position)
    is_root = paths.parents < 0
    meta = msgspec.structs.replace(snapshot.meta, extra_nodes=(), extra_edges=())
    parents, group_labels = merger.parents[:count].copy(), merger.labels[:count].copy()
    group_kinds = merger.kinds[:count].copy()
    hashes = _step_hashes(group_labels, group_kinds, snapshot.names.texts, kind_table)
    items = _item_counts(snapshot)[paths.nodes]
    blocks = blocks_of(snapshot)
    return Groups(
        meta=meta,
        parents=parents,
        labels=group_labels,
        kinds=group_kinds,
        steps=hashes,
        identities=identify(parents, hashes),
        counts=np.bincount(of_position[~steps.is_through], minlength=count),
        bytes=_sum(of_position, sizes, count),
        lengths=_sum(of_position, items, count),
        block_counts=_sum(of_position, blocks.counts[paths.nodes], count),
        block_bytes=_sum(of_position, blocks.bytes[paths.nodes], count),
        samples=merger.samples[:count].copy(),
        is_folded=merger.is_folded[:count].copy(),
        payload_groups=payload[0],
        payload_kinds=payload[1],
        payload_bytes=payload[2],
        payload_names=snapshot.kinds,
        kind_table=kind_table,
        parts=parts,
        roots=paths.roots,
        members=Members(
            nodes=paths.nodes,
            addresses=snapshot.addresses[paths.nodes],
            groups=of_position,
            is_part=steps.is_through,
            steps=steps.parents,
            parents=paths.parents,
            roots=np.where(is_root, paths.edges, -1).astype(np.int32),
            bytes=sizes,
        ),
        names=snapshot.names.texts,
        codes=codes,
        arrays=snapshot.arrays,
        our_bytes=paths.our_bytes,
    )


def _kinds(
    snapshot: HeapSnapshot, paths: Paths, steps: Steps, codes: CodeNames
) -> tuple[Indices, list[HeapType]]:
    """The type of each position; functions without a name of their own are told apart by what
    their code is called."""
    kinds = snapshot.types[paths.nodes]
    kind_table = list(snapshot.type_table)
    is_function = (parts_of(kind_table) & Part.FUNCTION) != 0
    is_wanted = (np.isin(steps.roles, _ANONYMOUS) | (steps.roles == ROOT_ROLE)) & is_function[kinds]
    positions = np.flatnonzero(is_wanted)
    of_node = np.zeros(snapshot.count, np.bool_)
    of_node[paths.nodes[positions]] = True
    names = codes.names_of(of_node)
    numbers: dict[tuple[int, str], int] = {}
    for position, node in zip(positions.tolist(), paths.nodes[positions].tolist(), strict=True):
        if (text := names.get(node)) is None:
            continue
        plain = int(snapshot.types[node])
        number = numbers.setdefault((plain, text), len(kind_table))
        if number == len(kind_table):
            kind_table.append(snapshot.type_table[plain]._replace(detail=text))
        kinds[position] = number
    return kinds, kind_table


def _item_counts(snapshot: HeapSnapshot) -> Numbers:
    """How many items each node refers to."""
    roles = snapshot.roles()
    before = np.zeros(len(roles) + 1, np.int64)
    np.cumsum((roles == EdgeRole.ITEM) | (roles == EdgeRole.ELEMENT), out=before[1:])
    return np.diff(before[snapshot.starts])


def _payload(
    snapshot: HeapSnapshot, paths: Paths, of_position: Indices
) -> tuple[Indices, Indices, Numbers]:
    """(group, kind, bytes) of what is not Python's own."""
    of_node = np.full(snapshot.count, -1, np.int64)
    of_node[paths.nodes] = of_position
    groups = of_node[snapshot.payload.nodes]
    is_here = groups >= 0
    number = len(snapshot.kinds)
    keys = groups[is_here] * number + snapshot.payload.kinds[is_here]
    found, inverse = np.unique(keys, return_inverse=True)
    total = _sum(inverse, snapshot.payload.bytes[is_here], len(found))
    return (found // number).astype(np.int32), (found % number).astype(np.int32), total


def _step_hashes(
    labels: Numbers, kinds: Indices, names: list[str], kind_table: list[HeapType]
) -> Words:
    of_name = np.array([hash(name) for name in names], np.int64).view(np.uint64)
    of_kind = [hash(f"{kind.qualified_name}:{kind.detail}") for kind in kind_table]
    steps: Words = of_name[names_of(labels)] * np.uint64(_PRIME)
    steps += roles_of(labels).astype(np.uint64) + np.uint64(1)
    steps *= np.uint64(_PRIME)
    steps += np.array(of_kind, np.int64).view(np.uint64)[kinds]
    return steps


def identify(parents: Indices, steps: Words) -> Words:
    """A hash of each group's path."""
    identities = np.zeros(len(parents), np.uint64)
    for level in levels_of(parents):
        identities[level] = mix(identities[parents[level]], steps[level])
    return identities


def mix(above: Words, steps: Words) -> Words:
    """A hash of paths, from those of the groups above and the steps from there."""
    mixed: Words = (above ^ steps) * np.uint64(_PRIME)
    return mixed ^ (mixed >> np.uint64(_SHIFT))


def levels_of(parents: Indices) -> list[Numbers]:
    """The groups by their distance from the top, without the top."""
    depths = np.zeros(len(parents), np.int64)
    above = parents.copy()
    left = np.arange(1, len(parents))
    while len(left):
        depths[left] += 1
        left = left[above[left] > 0]
        above[left] = parents[above[left]]
    order = np.argsort(depths, kind="stable")
    bounds = np.searchsorted(depths[order], np.arange(1, int(depths.max(initial=0)) + 2))
    return [order[low:high] for low, high in pairwise(bounds.tolist())]


def _sum(groups: AnyArray, values: AnyArray, count: int) -> Numbers:
    """Sums by group. Exact: fewer than 2**53 bytes fit into a machine."""
    total: Numbers = np.bincount(groups, weights=values, minlength=count).astype(np.int64)
    return total
