"""What no root leads to is told apart exactly as the collector would."""

from __future__ import annotations

import tempfile
from pathlib import Path

from heap_builder import HERE, Heap
from heap_naive import freed_by_a_collection, reachable
from hypothesis import given, settings
from hypothesis import strategies as st

from leakscope.heap.groups import Groups, read_groups
from leakscope.heap.unreached import GARBAGE, HIDDEN_CYCLE, LOOP, NATIVE
from leakscope.record.snapshot_file import EdgeRole, ExtraEdge, ExtraNode

objects = st.integers(1, 12).flatmap(
    lambda count: st.lists(
        st.tuples(
            st.lists(st.integers(0, count - 1), max_size=4),
            st.booleans(),
            st.sampled_from([0, 0, 0, 1]),
        ),
        min_size=count,
        max_size=count,
    )
)


def roots_of(groups: Groups) -> dict[int, str]:
    """How the path of each object begins."""
    members = groups.members
    found: dict[int, str] = {}
    for position, address in enumerate(members.addresses.tolist()):
        parent = int(members.parents[position])
        if parent < 0:
            found[address] = groups.roots[int(members.roots[position])].via
        else:
            found[address] = found[int(members.addresses[parent])]
    return found


def read(heap: Heap, folder: Path) -> dict[int, str]:
    groups = read_groups(heap.write(folder / "1.heap"))
    assert groups is not None
    return roots_of(groups)


@settings(max_examples=300, deadline=None)
@given(objects, st.lists(st.integers(0, 11), max_size=2))
def test_what_a_collection_would_free(
    made: list[tuple[list[int], bool, int]], held: list[int]
) -> None:
    """Breaks when something that a collection frees is not garbage, or something else is."""
    heap = Heap()
    addresses = [heap.add("Thing", is_tracked=is_tracked) for _, is_tracked, _ in made]
    # What the collector does not track leads nowhere that it does.
    graph = {
        address: [addresses[to] for to in edges if is_tracked or not made[to][1]]
        for address, (edges, is_tracked, _) in zip(addresses, made, strict=True)
    }
    graph = {a: [t for t in to if made[addresses.index(a)][1]] for a, to in graph.items()}
    counts = dict.fromkeys(addresses, 0)
    for address, (_, _, more) in zip(addresses, made, strict=True):
        heap.hold(address, more)
        counts[address] += more
        for target in graph[address]:
            heap.refer(address, target)
            counts[target] += 1
    roots = [addresses[at] for at in held if at < len(addresses)]
    for number, root in enumerate(roots):
        heap.local(root, f"held_{number}")
        counts[root] += 1
    with tempfile.TemporaryDirectory() as folder:
        found = read(heap, Path(folder))
    tracked = {
        address for address, (_, is_tracked, _) in zip(addresses, made, strict=True) if is_tracked
    }
    freed = freed_by_a_collection(graph, counts, tracked, set())
    alive = reachable(graph, roots)
    garbage = {address for address in addresses if found[address] == GARBAGE}
    # An object with no reference at all is gone before anybody looks at it.
    gone = {address for address in addresses if counts[address] == 0}
    assert (
        garbage - reachable(graph, sorted(gone)) == freed - reachable(graph, sorted(gone)) - alive
    )
    for address in addresses:
        if address in alive:
            assert found[address].startswith("local held")


def test_held_by_native_code(tmp_path: Path) -> None:
    """Breaks when what native code holds, or what that leads to, is called garbage."""
    heap = Heap()
    held, below = heap.add("Request"), heap.add("Body")
    heap.refer(held, below, EdgeRole.ATTRIBUTE, "body")
    heap.refer(held, held, EdgeRole.ATTRIBUTE, "me")
    heap.hold(held)
    iterator = heap.add("cycle", module="itertools")
    heap.hold(iterator)
    item = heap.refer(iterator, heap.add("Batch"))
    found = read(heap, tmp_path)
    assert (found[held], found[below]) == (NATIVE, NATIVE)
    assert (found[iterator], found[item]) == (LOOP, LOOP)


def test_garbage_is_told_by_its_most_telling_member(tmp_path: Path) -> None:
    """Breaks when a cycle is told by a dict or a list in it."""
    heap = Heap()
    heap.module("__main__", HERE)
    for _ in range(3):
        table, thing, method = (
            heap.add("dict"),
            heap.add("Session", module="__main__"),
            heap.add("method"),
        )
        heap.refer(thing, table, EdgeRole.ATTRIBUTE, "callbacks")
        heap.refer(table, method)
        heap.refer(method, thing, EdgeRole.SELF)
        heap.refer(thing, heap.add("Body", 500), EdgeRole.ATTRIBUTE, "body")
    groups = read_groups(heap.write(tmp_path / "1.heap"))
    assert groups is not None
    at = [group for group in range(1, len(groups)) if groups.label(group)[1] == GARBAGE]
    assert [groups.kind(group).name for group in at] == ["Session"]
    assert groups.counts[at].tolist() == [3]


def test_a_cycle_that_the_collector_does_not_see(tmp_path: Path) -> None:
    """Breaks when a cycle through an autograd node or an array of objects is called garbage: no
    collection frees it; or native: nobody holds it."""
    heap = Heap()
    parameter, gradient = heap.add("Parameter", module="torch"), heap.add("Tensor", module="torch")
    heap.refer(parameter, gradient, EdgeRole.ATTRIBUTE, "grad")
    heap.extra_nodes.append(ExtraNode(0x9000, "AccumulateGrad", 100, "", "nodes"))
    heap.extra_edges.append(ExtraEdge(gradient, 0x9000, EdgeRole.GRAD_FN))
    heap.extra_edges.append(ExtraEdge(0x9000, parameter, EdgeRole.VARIABLE))
    heap.hold(parameter)  # the node has it: counted, but no edge of the collector's
    array, owner = heap.array(1), heap.add("Owner")
    heap.refer(array, owner, EdgeRole.ELEMENT)
    heap.refer(owner, array, EdgeRole.ATTRIBUTE, "array")
    found = read(heap, tmp_path)
    assert {found[at] for at in (parameter, gradient, array, owner)} == {HIDDEN_CYCLE}


def test_classes_are_named(tmp_path: Path) -> None:
    """Breaks when a built-in class that only native code refers to has no name."""
    heap = Heap()
    klass, namespace = heap.klass("Registry", "library")
    heap.hold(klass)
    kept = heap.refer(namespace, heap.items("list"), EdgeRole.NAME, "things")
    assert read(heap, tmp_path)[kept] == "class Registry"


def test_immortal_objects_say_nothing(tmp_path: Path) -> None:
    """Breaks when the count of an immortal object makes it held by native code."""
    heap = Heap()
    ring = heap.add("Ring")
    heap.refer(ring, ring, EdgeRole.ATTRIBUTE, "me")
    none = heap.add("NoneType", is_tracked=False)
    heap.hold(none, 5000)
    heap.immortal(none)
    heap.refer(ring, none, EdgeRole.ATTRIBUTE, "nothing")
    assert read(heap, tmp_path)[none] == GARBAGE


def test_keys_are_references(tmp_path: Path) -> None:
    """Breaks when a string that is only a key is said to be held by native code."""
    heap = Heap()
    ring = heap.add("dict")
    heap.refer(ring, ring)
    key = heap.refer(ring, heap.add("str", is_tracked=False), EdgeRole.KEY, is_shortcut=True)
    assert read(heap, tmp_path)[key] == GARBAGE


def test_shortcuts_are_no_references(tmp_path: Path) -> None:
    """Breaks when a closure's cell is counted twice, and a native reference is lost for it."""
    heap = Heap()
    function, cell = heap.add("function"), heap.add("cell")
    heap.refer(function, heap.items("tuple", cell), EdgeRole.CLOSURE_TUPLE)
    heap.refer(function, cell, EdgeRole.CLOSURE, "me", is_shortcut=True)
    heap.refer(cell, function, EdgeRole.CELL)
    heap.hold(cell)
    found = read(heap, tmp_path)
    assert (found[function], found[cell]) == (NATIVE, NATIVE)
