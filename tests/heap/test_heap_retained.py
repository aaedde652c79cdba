"""Retained bytes equal what cannot be reached any more."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from heap_builder import HERE, Heap
from heap_naive import Graph, retained
from hypothesis import given, settings
from hypothesis import strategies as st

from leakscope.heap.contents import contents_of
from leakscope.heap.groups import group_objects
from leakscope.heap.retained import Retained
from leakscope.heap.snapshot import HeapSnapshot, read_snapshot

graphs = st.integers(1, 14).flatmap(
    lambda count: st.lists(
        st.lists(st.integers(0, count - 1), max_size=4), min_size=count, max_size=count
    )
)


def _read(heap: Heap, file: Path) -> HeapSnapshot:
    snapshot = read_snapshot(heap.write(file))
    assert snapshot is not None
    return snapshot


@settings(max_examples=200, deadline=None)
@given(graphs)
def test_against_removal(edges: list[list[int]]) -> None:
    """Breaks when an object retains more or less than what its removal cuts off."""
    heap = Heap()
    things = [heap.add("Thing", 1 << number) for number in range(len(edges))]
    for thing, targets in zip(things, edges, strict=True):
        for target in targets:
            heap.refer(thing, things[target])
    heap.module("__main__", HERE, first=things[0])
    with TemporaryDirectory() as folder:
        snapshot = _read(heap, Path(folder, "1.heap"))
    graph: Graph = dict(enumerate(edges))
    expected = retained(graph, [0], {node: 1 << node for node in graph})
    found = Retained(snapshot)
    sizes = [found.bytes_by(np.array(snapshot.find([thing]))) for thing in things]
    assert sizes == [expected.get(node, 0) for node in graph]


def test_of_a_set_of_objects(tmp_path: Path) -> None:
    """Breaks when what two holders share is said to be retained by one."""
    heap = Heap()
    shared, own = heap.add("Shared", 1000), heap.add("Own", 300)
    first, second = heap.items("list", shared, own, size=50), heap.items("list", shared, size=40)
    heap.module("__main__", HERE, first=first, second=second)
    snapshot = _read(heap, tmp_path / "1.heap")
    found = Retained(snapshot)
    a, b = (np.array(snapshot.find([at])) for at in (first, second))
    assert found.bytes_by(a) == 350
    assert found.bytes_by(b) == 40
    assert found.bytes_by(np.concatenate([a, b])) == 1390
    assert found.bytes_among(a, np.array(snapshot.find([own]))) == 300


def test_of_what_is_listed(tmp_path: Path) -> None:
    """Breaks when a list is told to keep alone what another has half of."""
    heap = Heap()
    records = [heap.add("Record", 5000) for _ in range(10)]
    heap.module(
        "__main__",
        HERE,
        kept=heap.items("list", *records, size=100),
        other=heap.items("list", *records[:5], size=60),
    )
    snapshot = _read(heap, tmp_path / "1.heap")
    groups = group_objects(snapshot)
    largest = contents_of(groups)[0]
    assert [link.via for link in largest.path] == ["module train", ".kept"]
    assert largest.size_bytes == 50_100
    found = Retained(snapshot)
    alone = found.bytes_among(groups.nodes_in([largest.group]), groups.nodes_in(largest.groups))
    assert alone == 25_100
