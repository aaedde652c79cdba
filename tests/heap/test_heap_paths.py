"""Every object that is alive has a path, and it is the one that a programmer would say."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from heap_builder import HERE, LIBRARY, Heap
from heap_naive import Graph, reachable, shortest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakscope.heap import reach
from leakscope.heap.arrays import Indices, Numbers
from leakscope.heap.groups import Groups, group_objects, read_groups
from leakscope.heap.links import links_of
from leakscope.heap.merge import path_of
from leakscope.heap.reach import Reach
from leakscope.heap.snapshot import read_snapshot
from leakscope.record.snapshot_file import NAMESPACE, EdgeRole, OtherRoot

graphs = st.integers(1, 14).flatmap(
    lambda count: st.tuples(
        st.lists(st.lists(st.integers(0, count - 1), max_size=5), min_size=count, max_size=count),
        st.lists(st.lists(st.integers(0, count - 1), max_size=3), min_size=1, max_size=3),
    )
)


def as_arrays(edges: list[list[int]]) -> tuple[Numbers, Indices]:
    starts = np.cumsum([0, *map(len, edges)])
    return starts, np.array([target for row in edges for target in row], np.int32)


@settings(max_examples=300, deadline=None)
@given(graphs, st.sampled_from([0, 3, 200]))
def test_shortest_paths_stage_by_stage(
    made: tuple[list[list[int]], list[list[int]]], narrow: int
) -> None:
    """Breaks when a path is longer than it need be, in batches, in a plain loop, or in both."""
    edges, stages = made
    graph: Graph = dict(enumerate(edges))
    starts, targets = as_arrays(edges)
    was, reach.NARROW = reach.NARROW, narrow
    try:
        found = Reach(starts, targets, np.zeros(len(targets), np.uint8))
        taken: set[int] = set()
        for stage in stages:
            begin = found.count
            found.begin(np.array(stage, np.int32), np.zeros(len(stage), np.int64))
            found.follow(begin, 0)
            inside = {node: [t for t in graph[node] if t not in taken] for node in graph}
            expected = shortest(inside, [node for node in stage if node not in taken])
            depths: dict[int, int] = {}
            for position in range(begin, found.count):
                parent = int(found.parents[position])
                depths[position] = 0 if parent < 0 else depths[parent] + 1
                if parent >= 0:
                    edge = int(found.edges[position])
                    assert targets[edge] == found.nodes[position]
                    source = int(found.nodes[parent])
                    assert starts[source] <= edge < starts[source + 1]
            assert {int(found.nodes[at]): depth for at, depth in depths.items()} == expected
            taken |= set(expected)
    finally:
        reach.NARROW = was


@settings(max_examples=200, deadline=None)
@given(graphs, st.data())
def test_poorer_edges_only_where_needed(
    made: tuple[list[list[int]], list[list[int]]], data: st.DataObject
) -> None:
    """Breaks when an object that has a good path gets a poor one, or one that has any gets none."""
    edges, [roots, *_] = made
    starts, targets = as_arrays(edges)
    ranks = data.draw(st.lists(st.integers(0, 2), min_size=len(targets), max_size=len(targets)))
    found = Reach(starts, targets, np.array(ranks, np.uint8))
    found.begin(np.array(roots, np.int32), np.zeros(len(roots), np.int64))
    found.follow(0, 0)
    for rank in (0, 1, 2):
        if rank:
            found.follow_again(rank)
        numbers = iter(ranks)
        inside = {
            node: [target for target in row if next(numbers) <= rank]
            for node, row in enumerate(edges)
        }
        assert set(found.nodes[: found.count].tolist()) == reachable(inside, roots)


def test_a_chain_is_no_slower_than_a_list() -> None:
    """Breaks when each of 100,000 links costs a batch of NumPy calls."""
    count = 100_000
    starts = np.minimum(np.arange(count + 1), count - 1)
    targets = np.arange(1, count, dtype=np.int32)
    found = Reach(starts, targets, np.zeros(len(targets), np.uint8))
    began = time.perf_counter()
    found.begin(np.zeros(1, np.int32), np.zeros(1, np.int64))
    found.follow(0, 0)
    assert found.count == count
    assert time.perf_counter() - began < 2


# ── which path is said ──


def groups_of(heap: Heap, tmp_path: Path) -> Groups:
    groups = read_groups(heap.write(tmp_path / "1.heap"))
    assert groups is not None
    return groups


def said(groups: Groups, address: int) -> list[str]:
    """The path of an object in words."""
    members = groups.members
    [position] = np.flatnonzero(members.addresses == np.uint64(address))
    path = path_of(groups.parents, int(members.groups[position]))
    return [link.via for link in links_of(groups, path)]


def test_the_programs_own_names_come_first(tmp_path: Path) -> None:
    """Breaks when a library's table, or an inner function's `self`, is said although the program
    has a name for the object."""
    heap = Heap()
    kept = heap.items("list")
    trainer = heap.instance("Trainer", losses=kept)
    heap.local(trainer, "self", "Trainer.fit", depth=2, is_argument=True)
    heap.local(trainer, "trainer", "main", depth=1)
    heap.module("logging", LIBRARY, table=kept)
    groups = groups_of(heap, tmp_path)
    assert said(groups, kept) == ["local trainer in main()", ".losses"]
    heap.module("__main__", HERE, things=heap.items("list", trainer))
    groups = groups_of(heap, tmp_path)
    assert said(groups, kept) == ["module train", ".things", "[x]", ".losses"]


def test_a_module_is_said_rather_than_a_library_function(tmp_path: Path) -> None:
    """Breaks when what a library keeps is named by one of its functions that happens to run."""
    heap = Heap()
    kept = heap.items("list")
    heap.local(kept, "table", "run", LIBRARY)
    heap.module("library", LIBRARY, registry=heap.instance("Registry", table=kept))
    assert said(groups_of(heap, tmp_path), kept) == ["module library", ".registry", ".table"]


def test_a_thread_names_its_own_attributes(tmp_path: Path) -> None:
    """Breaks when a thread's attribute is said by the `self` of its `run`."""
    heap = Heap()
    kept = heap.items("list")
    thread = heap.instance("Feeder", seen=kept)
    heap.local(thread, "self", "Feeder.run", thread="feeder", is_argument=True)
    heap.others.append(OtherRoot(thread, "thread feeder", "thread", "feeder"))
    assert said(groups_of(heap, tmp_path), kept) == ["thread feeder", ".seen"]
    heap.local(heap.instance("Pool", worker=thread), "pool")
    assert said(groups_of(heap, tmp_path), kept) == ["local pool in main()", ".worker", ".seen"]


def test_a_class_is_not_reached_through_its_instances(tmp_path: Path) -> None:
    """Breaks when what a class keeps is said by way of one of its instances."""
    heap = Heap()
    kept = heap.items("list")
    klass, namespace = heap.klass("Trainer")
    heap.refer(namespace, kept, EdgeRole.NAME, "registry")
    trainer = heap.instance("Trainer")
    heap.refer(trainer, klass, EdgeRole.TYPE)
    main = heap.module("__main__", HERE, trainer=trainer)
    assert said(groups_of(heap, tmp_path), kept) == [
        "module train",
        ".trainer",
        ".__class__",
        ".registry",
    ]
    heap.refer(main, klass, EdgeRole.NAME, "Trainer")
    assert said(groups_of(heap, tmp_path), kept) == ["module train", ".Trainer", ".registry"]


def test_an_imported_class_is_at_home_where_it_was_made(tmp_path: Path) -> None:
    """Breaks when a library's class is said by who imported it."""
    heap = Heap()
    kept = heap.items("list")
    klass, namespace = heap.klass("Registry", "library")
    heap.refer(namespace, kept, EdgeRole.NAME, "things")
    heap.module("__main__", HERE, Registry=klass)
    heap.module("library", LIBRARY, Registry=klass)
    assert said(groups_of(heap, tmp_path), kept) == ["module library", ".Registry", ".things"]


def test_modules_are_no_way_to_each_other(tmp_path: Path) -> None:
    """Breaks when everything of a library is said by the module that imports it."""
    heap = Heap()
    kept = heap.items("list")
    library = heap.module("library", LIBRARY, table=kept)
    heap.module("__main__", HERE, library=heap.module_object(library))
    assert said(groups_of(heap, tmp_path), kept) == ["module library", ".table"]


def test_a_module_that_was_never_imported_is_a_way(tmp_path: Path) -> None:
    """Breaks when a module object that is no root is not searched."""
    heap = Heap()
    kept = heap.items("list")
    namespace = heap.add("dict", 232, flags=NAMESPACE)
    heap.refer(namespace, kept, EdgeRole.NAME, "table")
    heap.module("__main__", HERE, plugins=heap.items("list", heap.module_object(namespace)))
    path = said(groups_of(heap, tmp_path), kept)
    assert path == ["module train", ".plugins", "[x]", ".table"]


def test_the_history_of_a_session_is_the_last_name(tmp_path: Path) -> None:
    """Breaks when `_12` is said of what a variable holds too."""
    heap = Heap()
    kept = heap.items("list")
    heap.module("__main__", HERE, _12=kept, model=heap.instance("Model", layers=kept))
    assert said(groups_of(heap, tmp_path), kept) == ["module train", ".model", ".layers"]


def test_globals_of_a_function_that_is_left(tmp_path: Path) -> None:
    """Breaks when a namespace that only a function refers to has no path."""
    heap = Heap()
    kept = heap.items("list")
    namespace = heap.add("dict", 232, flags=NAMESPACE)
    heap.refer(namespace, kept, EdgeRole.NAME, "table")
    function = heap.add("function")
    heap.refer(function, namespace, EdgeRole.GLOBALS)
    heap.module("__main__", HERE, hooks=heap.items("list", function))
    path = said(groups_of(heap, tmp_path), kept)
    assert path == ["module train", ".hooks", "[x]", "globals of <unknown>()", ".table"]


def test_our_own_memory_is_left_out(tmp_path: Path) -> None:
    """Breaks when leakscope's tables are told as the program's, or the program's as leakscope's."""
    heap = Heap()
    ours, shared = heap.items("list", size=5000), heap.items("list")
    agent = heap.instance("Agent", module="leakscope.agent", table=ours, shared=shared)
    folder = "/usr/lib/python3.11/site-packages/leakscope/"
    heap.module("leakscope", f"{folder}__init__.py", agent=agent)
    namespace = heap.module("leakscope.agent", f"{folder}agent.py", more=shared)
    hook = heap.add("function", 200)
    heap.refer(hook, namespace, EdgeRole.GLOBALS)
    heap.refer(hook, heap.items("list", size=300), EdgeRole.DEFAULT, "kept", is_shortcut=True)
    heap.module("torch", LIBRARY, hooks=heap.items("list", hook, agent))
    heap.module("__main__", HERE, things=heap.items("list", shared))
    groups = groups_of(heap, tmp_path)
    known = set(groups.members.addresses.tolist())
    assert not known & {ours, agent, hook, namespace}
    assert said(groups, shared) == ["module train", ".things", "[x]"]
    assert groups.our_bytes >= 5000 + 200 + 300


def test_everything_has_a_path(tmp_path: Path) -> None:
    """Breaks when bytes of the program are in no group."""
    heap = Heap()
    heap.module("__main__", HERE, things=heap.items("list", heap.array(100)))
    heap.hold(heap.add("Thing", 500))
    heap.refer(garbage := heap.add("Ring", 300), garbage, EdgeRole.ATTRIBUTE, "me")
    path = heap.write(tmp_path / "1.heap")
    snapshot = read_snapshot(path)
    assert snapshot is not None
    groups = group_objects(snapshot)
    assert groups.bytes.sum() == snapshot.bytes.sum()
    assert len(groups.members.nodes) == snapshot.count
