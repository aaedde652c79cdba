"""A snapshot file becomes arrays: nothing is lost, nothing is counted twice."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from heap_builder import HERE, Heap

from leakscope.heap.arrays import AddressTable
from leakscope.heap.groups import group_objects
from leakscope.heap.name_table import NameTable
from leakscope.heap.snapshot import NAME_MASK, NO_REFCOUNT, HeapSnapshot, read_snapshot
from leakscope.record.snapshot_file import EdgeRole, ExtraEdge, ExtraNode


def read(heap: Heap, tmp_path: Path) -> HeapSnapshot:
    snapshot = read_snapshot(heap.write(tmp_path / "1.heap"))
    assert snapshot is not None
    return snapshot


def edges_from(snapshot: HeapSnapshot, address: int) -> list[tuple[int, EdgeRole, str]]:
    [node] = snapshot.find([address])
    found = []
    for edge in range(int(snapshot.starts[node]), int(snapshot.starts[node + 1])):
        label = int(snapshot.labels[edge])
        number = snapshot.names.find(np.array([label & NAME_MASK], np.uint64))[0]
        target = int(snapshot.addresses[snapshot.targets[edge]])
        found.append((target, EdgeRole(label >> 56), snapshot.names.texts[number]))
    return found


def test_edges_with_and_without_labels(tmp_path: Path) -> None:
    """Breaks when the words of an object with labels and of one without are mixed up."""
    heap = Heap()
    one, two = heap.add("int", 32), heap.add("int", 32)
    items = heap.items("list", one, two, one)
    thing = heap.instance("Trainer", losses=items, best=one)
    heap.refer(thing, 0x1234560, EdgeRole.ATTRIBUTE, "gone")
    heap.module("__main__", HERE, trainer=thing)
    snapshot = read(heap, tmp_path)
    assert edges_from(snapshot, items) == [(at, EdgeRole.ITEM, "") for at in (one, two, one)]
    assert edges_from(snapshot, thing) == [
        (items, EdgeRole.ATTRIBUTE, "losses"),
        (one, EdgeRole.ATTRIBUTE, "best"),
    ]


def test_sizes_and_counts(tmp_path: Path) -> None:
    """Breaks when the data of an array is lost, or that of a view is counted."""
    heap = Heap()
    own, view = heap.array(10, 20), heap.array(10, 20, item_bytes=4, owns=False)
    empty = heap.array()
    held = heap.add("Thing", 100)
    heap.hold(held, 3)
    static = heap.add("int", 28)
    heap.immortal(static)
    snapshot = read(heap, tmp_path)
    nodes = snapshot.find([own, view, held, static, empty])
    assert snapshot.bytes[nodes].tolist() == [112 + 1600, 112, 100, 28, 112 + 8]
    assert snapshot.refcounts[nodes].tolist() == [0, 0, 3, NO_REFCOUNT, 0]
    assert snapshot.payload.bytes.tolist() == [1600, 8]
    assert [snapshot.kinds[kind] for kind in snapshot.payload.kinds] == [("arrays", "")] * 2
    assert snapshot.arrays.describe(0, "ndarray") == "ndarray [10, 20] float64"
    assert snapshot.arrays.describe(1, "ndarray") == "ndarray [10, 20] float32"
    assert snapshot.arrays.describe(2, "ndarray") == "ndarray [] float64"


def test_things_of_frameworks(tmp_path: Path) -> None:
    """Breaks when a storage is no node, or a node that is an object too becomes two."""
    heap = Heap()
    tensor, other = heap.add("Tensor", 80, module="torch"), heap.add("Tensor", 80, module="torch")
    heap.module("__main__", HERE, loss=tensor)
    heap.extra_nodes += [
        ExtraNode(0x9000, "Storage", 4096, "cuda:0", "tensors"),
        ExtraNode(0xA000, "MeanBackward0", 640, "", "nodes"),
        ExtraNode(other, "ignored", 16, "", "saved"),
    ]
    heap.extra_edges += [
        ExtraEdge(tensor, 0x9000, EdgeRole.STORAGE),
        ExtraEdge(tensor, 0xA000, EdgeRole.GRAD_FN),
        ExtraEdge(0xA000, other, EdgeRole.SAVED, "self"),
        ExtraEdge(0xA000, 0xB000, EdgeRole.NEXT),
    ]
    snapshot = read(heap, tmp_path)
    assert edges_from(snapshot, tensor) == [
        (0x9000, EdgeRole.STORAGE, ""),
        (0xA000, EdgeRole.GRAD_FN, ""),
    ]
    assert edges_from(snapshot, 0xA000) == [(other, EdgeRole.SAVED, "self")]
    nodes = snapshot.find([tensor, other, 0x9000, 0xA000])
    assert [snapshot.type_table[snapshot.types[node]].name for node in nodes] == [
        "Tensor",
        "Tensor",
        "Storage",
        "MeanBackward0",
    ]
    assert snapshot.bytes[nodes].tolist() == [80, 96, 4096, 640]
    assert ("tensors", "cuda:0") in snapshot.kinds
    assert snapshot.count == snapshot.object_count + 2


def test_a_node_that_became_an_object_stays_the_same_thing(tmp_path: Path) -> None:
    """Breaks when looking at a graph makes Python objects of its nodes, and the next snapshot has
    them by another label or type."""
    heap = Heap()
    tensor = heap.add("Tensor", 80, module="torch")
    node = heap.add("MeanBackward0", 64)
    heap.refer(tensor, node, EdgeRole.ATTRIBUTE)
    heap.extra_nodes.append(ExtraNode(node, "MeanBackward0", 640, "", "nodes"))
    heap.extra_nodes.append(ExtraNode(0xA000, "MeanBackward0", 640, "", "nodes"))
    heap.extra_edges.append(ExtraEdge(tensor, node, EdgeRole.GRAD_FN))
    heap.extra_edges.append(ExtraEdge(node, 0xA000, EdgeRole.NEXT))
    snapshot = read(heap, tmp_path)
    assert edges_from(snapshot, tensor) == [(node, EdgeRole.GRAD_FN, "")]
    assert edges_from(snapshot, node) == [(0xA000, EdgeRole.NEXT, "")]
    assert not snapshot.is_extra[snapshot.starts[snapshot.find([tensor])[0]]]
    nodes = snapshot.find([node, 0xA000])
    assert len(set(snapshot.types[nodes].tolist())) == 1


def test_incomplete_file(tmp_path: Path) -> None:
    """Breaks when a file that was cut short is read as if it were whole."""
    path = Heap().write(tmp_path / "1.heap")
    whole = path.read_bytes()
    for end in (3, 40, len(whole) - 1, len(whole) - 16):
        path.write_bytes(whole[:end])
        assert read_snapshot(path) is None
    path.write_bytes(b"LSHEAP99" + whole[8:])
    assert read_snapshot(path) is None
    path.write_bytes(whole.replace(b'"process"', b'"passage"'))
    assert read_snapshot(path) is None


def test_a_program_without_anything(tmp_path: Path) -> None:
    """Breaks when a snapshot has no object, or no root."""
    heap = Heap()
    heap.modules.clear()
    heap._objects.clear()
    snapshot = read(heap, tmp_path)
    assert snapshot.count == 0
    assert len(group_objects(snapshot)) == 1


def test_the_same_name_at_two_pointers(tmp_path: Path) -> None:
    """Breaks when a name that is not interned becomes another name."""
    heap = Heap()
    namespace = heap.module("__main__", HERE, loss_a=heap.add(), loss_b=heap.add())
    path = heap.write(tmp_path / "1.heap")
    path.write_bytes(path.read_bytes().replace(b"loss_b", b"loss_a"))
    snapshot = read_snapshot(path)
    assert snapshot is not None
    assert [name for _, _, name in edges_from(snapshot, namespace)] == ["loss_a", "loss_a"]
    assert snapshot.names.texts.count("loss_a") == 1


def test_names_that_are_no_objects() -> None:
    """Breaks when two names of members in C, which lie close together, are mixed up or lost."""
    texts = {0x7F00_0000_0010 + at: f"name_{at}" for at in (0, 2, 5, 8, 13, 16, 19, 40)}
    names = NameTable(texts)
    pointers = np.array([*texts, 0, 0x7F00_0000_0011], np.uint64)
    found = [names.texts[number] for number in names.find(pointers).tolist()]
    assert found == [*texts.values(), "", ""]


def test_addresses_that_are_no_objects() -> None:
    """Breaks when two things of a framework begin within 16 bytes."""
    addresses = np.array([0x5000, 0x5008, 0x9000, 0x9001, 0x5010], np.uint64)
    table = AddressTable(addresses)
    assert table.find(addresses).tolist() == [0, 1, 2, 3, 4]
    assert table.find(np.array([0x5004, 0x9002], np.uint64)).tolist() == [-1, -1]


@pytest.mark.parametrize("spread", [16, 4096, 1 << 30])
def test_addresses(spread: int) -> None:
    """Breaks when an address is not found, or one that is not there is."""
    chance = random.Random(spread)
    known = {0x5500_0000_0000 + 16 * chance.randrange(spread) for _ in range(500)}
    known |= {0x7F00_0000_0000 + spread * number + 8 for number in range(300)}
    addresses = np.array(chance.sample(sorted(known), len(known)), np.uint64)
    table = AddressTable(addresses)
    assert (table.find(addresses) == np.arange(len(addresses))).all()
    others = np.array([at + 4 for at in known] + [0, 1, (1 << 48) - 1], np.uint64)
    assert (table.find(others) == -1).all()
    assert AddressTable(np.empty(0, np.uint64)).find(addresses).max() == -1
