"""Read one heap snapshot file into arrays: objects, what they take, and who refers to whom."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from leakscope.heap.array_table import ArrayTable
from leakscope.heap.arrays import (
    AddressTable,
    Booleans,
    Indices,
    Numbers,
    Octets,
    Words,
    edges_of,
)
from leakscope.heap.code_table import CodeTable
from leakscope.heap.name_table import NameTable, read_names
from leakscope.heap.type_table import HeapType, read_types
from leakscope.record.snapshot_file import (
    CLASS,
    IMMORTAL,
    LABELLED,
    MODULE,
    NAMESPACE,
    ROLE_SHIFT,
    SHORTCUT,
    SIZE_MASK,
    TRACKED,
    EdgeRole,
    SnapshotMeta,
    read_chunks,
)

FLAG_SHIFT = 56
"""Flags of an object are the highest byte of its third word."""

IS_TRACKED, IS_NAMESPACE, IS_CLASS, IS_MODULE, IS_IMMORTAL = (
    np.uint8(flag >> FLAG_SHIFT) for flag in (TRACKED, NAMESPACE, CLASS, MODULE, IMMORTAL)
)
_IS_LABELLED = np.uint8(LABELLED >> FLAG_SHIFT)
NO_REFCOUNT = -1
"""Of what is immortal or no Python object: its reference count says nothing."""

NAME_MASK = (1 << 48) - 1
_FIRST_EXTRA_NAME = 1 << 47
"""Names that adapters give have no pointer: they get one that no program can have."""

_UNNAMED = np.array([0, int(EdgeRole.ATTRIBUTE) << ROLE_SHIFT], np.uint64)
"""Labels that say nothing."""

_FRAMEWORKS = ("torch", "tensorflow", "jax", "jaxlib", "builtins")
"""Modules that types of frameworks are in."""

_read_meta = msgspec.json.Decoder(SnapshotMeta).decode


class Payload(NamedTuple):
    """Bytes that are not Python's own: data of arrays, storages, autograd nodes."""

    nodes: Indices
    kinds: Indices
    """Index in `HeapSnapshot.kinds`."""
    bytes: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class HeapSnapshot:
    """One moment of a process. A *node* is an object, or a thing of a framework."""

    meta: SnapshotMeta
    addresses: Words
    types: Indices
    """Index in `type_table`."""
    bytes: Numbers
    """Of each node: its own and, for an array, its data."""
    refcounts: Numbers
    flags: Octets
    object_count: int
    """Nodes from here on are things of frameworks."""
    starts: Numbers
    """Edges of node i are `starts[i]` up to `starts[i + 1]`."""
    targets: Indices
    labels: Words
    is_extra: Booleans
    """Of each edge: an adapter added it, the collector does not see it."""
    type_table: list[HeapType]
    names: NameTable
    arrays: ArrayTable
    codes: CodeTable
    payload: Payload
    kinds: list[tuple[str, str]]
    """(part, device) of payloads: ("arrays", ""), ("tensors", "cuda:0")."""
    table: AddressTable
    edge_roles: Octets

    @property
    def count(self) -> int:
        return len(self.addresses)

    def roles(self) -> Octets:
        """The role of each edge."""
        return self.edge_roles

    def sources(self) -> Indices:
        """The node that each edge begins at."""
        nodes = np.arange(self.count, dtype=np.int32)
        sources: Indices = np.repeat(nodes, np.diff(self.starts))
        return sources

    def find(self, addresses: list[int]) -> list[int]:
        """The node at each address; -1 where there is none."""
        found: list[int] = self.table.find(np.array(addresses, np.uint64)).tolist()
        return found


def read_snapshot(path: Path) -> HeapSnapshot | None:
    """Read a snapshot; None if it was cut short or is of another format."""
    chunks = read_chunks(path)
    if "meta" not in chunks:
        return None
    try:
        meta = _read_meta(b"".join(chunks["meta"]))
    except msgspec.DecodeError:
        return None
    objects: Words = _words(chunks.get("objects", [])).reshape(-1, 4)
    words: Words = _words(chunks.get("edges", []))
    type_table = read_types(chunks.get("types", []))
    names = read_names(chunks.get("names", []))
    arrays = ArrayTable(chunks.get("arrays", []), meta.dtypes)
    codes = CodeTable(_words(chunks.get("codes", [])), chunks.get("texts", []), meta.code)
    del chunks
    extras = _Extras(meta, objects[:, 0])
    addresses = np.concatenate([objects[:, 0], extras.new_addresses])
    table = AddressTable(addresses)
    flags = (objects[:, 2] >> np.uint64(FLAG_SHIFT)).astype(np.uint8)
    counts = (objects[:, 3] >> np.uint64(32)).astype(np.int64)
    targets, labels = _edges(words, counts, (flags & _IS_LABELLED) != 0)
    del words
    indices = table.find(targets)
    del targets
    graph = _Graph(counts, indices, labels)
    graph.drop_missing()
    graph.append_nodes(extras.new_count)
    graph.insert(*extras.edges(meta, table, names))
    sizes = (objects[:, 2] & np.uint64(SIZE_MASK)).astype(np.int64)
    refcounts = (objects[:, 3] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    refcounts[(flags & IS_IMMORTAL) != 0] = NO_REFCOUNT
    more = extras.new_count
    payload, kinds = _payload(meta, arrays, table)
    total = np.concatenate([sizes, np.zeros(more, np.int64)])
    np.add.at(total, payload.nodes, payload.bytes)
    return HeapSnapshot(
        meta=meta,
        addresses=addresses,
        types=extras.types(objects[:, 1], type_table),
        bytes=total,
        refcounts=np.concatenate([refcounts, np.full(more, NO_REFCOUNT)]),
        flags=np.concatenate([flags, np.zeros(more, np.uint8)]),
        object_count=len(objects),
        starts=graph.starts(),
        targets=graph.targets,
        labels=graph.labels,
        is_extra=graph.is_extra,
        type_table=type_table,
        names=NameTable(names),
        arrays=arrays,
        codes=codes,
        payload=payload,
        kinds=kinds,
        table=table,
        edge_roles=(graph.labels >> np.uint64(ROLE_SHIFT)).astype(np.uint8),
    )


def _words(payloads: list[memoryview]) -> Words:
    parts = [np.frombuffer(payload, np.uint64) for payload in payloads]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _edges(words: Words, counts: Numbers, is_labelled: Booleans) -> tuple[Words, Words]:
    """Target and label of each edge: one word or two, as the object they begin at says."""
    has_label = np.repeat(is_labelled, counts)
    at = np.cumsum(has_label, dtype=np.int32)
    at -= has_label
    at += np.arange(len(at), dtype=np.int32)
    labels = np.zeros(len(at), np.uint64)
    labels[has_label] = words[at[has_label] + 1]
    return words[at], labels


class _Graph:
    """Edges in the order of the nodes that they begin at, while they are put together."""

    def __init__(self, counts: Numbers, targets: Indices, labels: Words) -> None:
        self._counts = counts
        self.targets = targets
        self.labels = labels
        self.is_extra = np.zeros(len(targets), np.bool_)

    def starts(self) -> Numbers:
        starts = np.zeros(len(self._counts) + 1, np.int64)
        np.cumsum(self._counts, out=starts[1:])
        return starts

    def drop_missing(self) -> None:
        """Drop edges to objects that the snapshot does not have."""
        is_here = self.targets >= 0
        if is_here.all():
            return
        kept = np.zeros(len(is_here) + 1, np.int64)
        np.cumsum(is_here, out=kept[1:])
        self._counts = np.diff(kept[self.starts()])
        self.targets, self.labels = self.targets[is_here], self.labels[is_here]
        self.is_extra = self.is_extra[is_here]

    def append_nodes(self, count: int) -> None:
        self._counts = np.concatenate([self._counts, np.zeros(count, np.int64)])

    def insert(self, sources: Indices, targets: Indices, labels: Words) -> None:
        """Add edges, each after those that its source has. Where the source visits the target too,
        without a name for it, that edge gets the label instead."""
        is_new = self._name(sources, targets, labels)
        sources, targets, labels = sources[is_new], targets[is_new], labels[is_new]
        if not len(sources):
            return
        order = np.argsort(sources, kind="stable")
        places = self.starts()[sources[order] + 1]
        self.targets = np.insert(self.targets, places, targets[order])
        self.labels = np.insert(self.labels, places, labels[order])
        self.is_extra = np.insert(self.is_extra, places, True)
        self._counts = self._counts + np.bincount(sources, minlength=len(self._counts))

    def _name(self, sources: Indices, targets: Indices, labels: Words) -> Booleans:
        """Give edges without a name the label of a new one; which ones are new then."""
        owners = np.unique(sources)
        edges, ends = edges_of(self.starts(), owners)
        owner = owners[np.searchsorted(ends, np.arange(len(edges)), side="right")].astype(np.int64)
        unnamed = np.flatnonzero(np.isin(self.labels[edges], _UNNAMED))
        known = owner[unnamed] << 32 | self.targets[edges[unnamed]]
        wanted, first = np.unique(sources.astype(np.int64) << 32 | targets, return_index=True)
        _, mine, theirs = np.intersect1d(wanted, known, return_indices=True)
        self.labels[edges[unnamed[theirs]]] = labels[first[mine]]
        is_new = np.ones(len(sources), np.bool_)
        is_new[first[mine]] = False
        return is_new


class _Extras:
    """Things of frameworks: those that are no objects become nodes after the objects."""

    def __init__(self, meta: SnapshotMeta, objects: Words) -> None:
        wanted = np.array([node.address for node in meta.extra_nodes], np.uint64)
        is_new = ~np.isin(wanted, objects) if len(wanted) else np.zeros(0, np.bool_)
        self._new = [node for node, new in zip(meta.extra_nodes, is_new, strict=True) if new]
        self.new_addresses: Words = wanted[is_new]
        self.new_count = len(self._new)

    def types(self, type_addresses: Words, type_table: list[HeapType]) -> Indices:
        """The type of each node; types of frameworks are added to the table."""
        numbers = _framework_types(type_table)
        mine = []
        for node in self._new:
            number = numbers.setdefault(node.type, len(type_table))
            if number == len(type_table):
                type_table.append(HeapType(0, node.type, ""))
            mine.append(number)
        known = AddressTable(np.array([one.address for one in type_table], np.uint64))
        of_objects = known.find(type_addresses)
        if (of_objects < 0).any():
            of_objects[of_objects < 0] = len(type_table)
            type_table.append(HeapType(0, "object", ""))
        return np.concatenate([of_objects, np.array(mine, np.int32)])

    def edges(
        self, meta: SnapshotMeta, table: AddressTable, names: dict[int, str]
    ) -> tuple[Indices, Indices, Words]:
        """The edges that adapters added. Their names are added to `names`."""
        sources = table.find(np.array([edge.source for edge in meta.extra_edges], np.uint64))
        targets = table.find(np.array([edge.target for edge in meta.extra_edges], np.uint64))
        pointers: dict[str, int] = {"": 0}
        labels = []
        for edge in meta.extra_edges:
            pointer = pointers.setdefault(edge.name, _FIRST_EXTRA_NAME + 16 * len(pointers))
            # A name for what a table refers to is no reference of its own.
            shortcut = SHORTCUT if edge.role < EdgeRole.STORAGE else 0
            labels.append(edge.role << ROLE_SHIFT | shortcut | pointer)
        names.update((pointer, text) for text, pointer in pointers.items() if pointer)
        is_here = (sources >= 0) & (targets >= 0)
        return sources[is_here], targets[is_here], np.array(labels, np.uint64)[is_here]


def _framework_types(type_table: list[HeapType]) -> dict[str, int]:
    """Types that things of frameworks can have by their names: a node of a graph is an object as
    soon as somebody has asked for it, and stays the same thing."""
    found: dict[str, int] = {}
    for number, kind in enumerate(type_table):
        if kind.module.partition(".")[0] in _FRAMEWORKS:
            found.setdefault(kind.qualified_name, number)
    return found


def _payload(
    meta: SnapshotMeta, arrays: ArrayTable, table: AddressTable
) -> tuple[Payload, list[tuple[str, str]]]:
    numbers: dict[tuple[str, str], int] = {("arrays", ""): 0}
    extra_kinds = [
        numbers.setdefault((node.part, node.device), len(numbers)) for node in meta.extra_nodes
    ]
    extra_nodes = table.find(np.array([node.address for node in meta.extra_nodes], np.uint64))
    nodes = np.concatenate([table.find(arrays.addresses), extra_nodes])
    kinds = np.concatenate([np.zeros(len(arrays.addresses), np.int32), extra_kinds])
    sizes = [node.bytes for node in meta.extra_nodes]
    total = np.concatenate([arrays.data_bytes(), np.array(sizes, np.int64)])
    # A node without bytes stands for memory whose size nobody can tell.
    is_told = np.concatenate([arrays.data_bytes() > 0, np.ones(len(extra_nodes), np.bool_)])
    counts = (nodes >= 0) & is_told
    return Payload(nodes[counts], kinds[counts].astype(np.int32), total[counts]), list(numbers)


def is_shortcut(labels: Words) -> Booleans:
    """Whether each edge is none that `tp_traverse` visits: it goes through another object too, or
    leads to a key that is a string."""
    found: Booleans = (labels & np.uint64(SHORTCUT)) != 0
    return found
