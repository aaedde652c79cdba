"""Retained bytes equal what cannot be reached any more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from heap_builder import HERE, Heap
from heap_naive import Graph, reachable, retained
from hypothesis import given, settings
from hypothesis import strategies as st

from leakscope.heap.dominators import NOBODY, NOT_REACHED, find_dominators
from leakscope.heap.groups import group_objects
from leakscope.heap.links import links_of
from leakscope.heap.merge import path_of
from leakscope.heap.retained import retained_by, retained_bytes, retained_groups
from leakscope.heap.snapshot import read_snapshot

graphs = st.integers(1, 14).flatmap(
    lambda count: st.tuples(
        st.lists(st.lists(st.integers(0, count - 1), max_size=4), min_size=count, max_size=count),
        st.lists(st.integers(0, count - 1), min_size=1, max_size=3),
    )
)


@settings(max_examples=500, deadline=None)
@given(graphs)
def test_against_removal(made: tuple[list[list[int]], list[int]]) -> None:
    """Breaks when a node retains more or less than what its removal cuts off."""
    edges, roots = made
    graph: Graph = dict(enumerate(edges))
    sizes = {node: 1 << node for node in graph}
    starts = np.cumsum([0, *map(len, edges)])
    targets = np.array([target for row in edges for target in row], np.int32)
    own = np.array([sizes[node] for node in graph])
    found = retained_bytes(starts, targets, np.array(roots), own)
    expected = retained(graph, roots, sizes)
    assert found.tolist() == [expected.get(node, 0) for node in graph]
    dominators = find_dominators(starts, targets, np.array(roots))
    assert {node for node in graph if dominators[node] != NOT_REACHED} == reachable(graph, roots)
    assert all(dominators[root] == NOBODY for root in roots)


def test_of_a_set_of_objects(tmp_path: Path) -> None:
    """Breaks when what two holders share is said to be retained by one."""
    heap = Heap()
    shared, own = heap.add("Shared", 1000), heap.add("Own", 300)
    first, second = heap.items("list", shared, own, size=50), heap.items("list", shared, size=40)
    heap.module("__main__", HERE, first=first, second=second)
    snapshot = read_snapshot(heap.write(tmp_path / "1.heap"))
    assert snapshot is not None
    a, b = (np.array(snapshot.find([at])) for at in (first, second))
    assert retained_by(snapshot, a) == 350
    assert retained_by(snapshot, b) == 40
    assert retained_by(snapshot, np.concatenate([a, b])) == 1390


def test_of_groups(tmp_path: Path) -> None:
    """Breaks when the tree of groups loses bytes, or shares them with the wrong holder."""
    heap = Heap()
    shared = heap.add("Shared", 5000)
    records = [heap.instance("Record", 500, shared=shared) for _ in range(10)]
    heap.module(
        "__main__",
        HERE,
        kept=heap.items("list", *records, size=100),
        other=heap.items("list", shared),
    )
    snapshot = read_snapshot(heap.write(tmp_path / "1.heap"))
    assert snapshot is not None
    groups = group_objects(snapshot)
    found = retained_groups(snapshot, groups)
    by_path = {
        tuple(link.via for link in links_of(groups, path_of(groups.parents, one.group))): one
        for one in found
    }
    assert by_path["module train", ".kept"].bytes == 5100
    assert by_path["module train", ".kept", "[x]"].bytes == 5000
    assert by_path["module train", ".other", "[x]"].bytes == 5000
    main = by_path["module train",]
    assert main.bytes == 232 + 5100 + 5000 + 64
    assert found[by_path["module train", ".kept"].above] == main
    assert found[by_path["module train", ".other", "[x]"].above] == main
