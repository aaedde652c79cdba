"""Objects with the same path are one group, chains fold, and Python's own parts do not show."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from heap_builder import HERE, Heap
from heap_naive import merge, path_of_group
from hypothesis import given, settings
from hypothesis import strategies as st

from leakscope.heap import reach
from leakscope.heap.groups import Groups, group_objects, levels_of, read_groups
from leakscope.heap.merge import Merger, merge_steps
from leakscope.heap.paths import find_paths
from leakscope.heap.snapshot import read_snapshot
from leakscope.record.snapshot_file import NAMESPACE, EdgeRole, ExtraEdge, ExtraNode

KINDS = ["list", "tuple", "Node", "Leaf"]
LABELS = ["item", "next", "left"]
ROLES = [EdgeRole.ITEM, EdgeRole.ATTRIBUTE, EdgeRole.ATTRIBUTE]


def groups_of(heap: Heap, tmp_path: Path) -> Groups:
    groups = read_groups(heap.write(tmp_path / "1.heap"))
    assert groups is not None
    return groups


def table(groups: Groups) -> dict[tuple[tuple[str, str], ...], tuple[int, int]]:
    """Members and bytes by path."""
    return {
        path_of_group(groups, group, _word): (int(groups.counts[group]), int(groups.bytes[group]))
        for group in range(1, len(groups))
    }


def _word(role: int, name: str) -> str:
    return name or EdgeRole(role).name.lower()


def of_main(groups: Groups) -> dict[tuple[str, ...], tuple[int, int]]:
    """The same for what `__main__` has, by labels only."""
    return {
        tuple(label for label, _ in path[1:]): value
        for path, value in table(groups).items()
        if path[0][0] == "module train" and len(path) > 1
    }


# ── against the plain way ──

trees = st.lists(
    st.tuples(
        st.integers(0, 1_000_000), st.sampled_from(range(len(LABELS))), st.sampled_from(KINDS)
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(trees, st.sampled_from([0, 4, 200]), st.booleans())
def test_groups_of_any_tree(made: list[tuple[int, int, str]], narrow: int, is_deep: bool) -> None:
    """Breaks when batches and plain loops give other groups than the plain way."""
    tree: dict[int, tuple[int | None, str]] = {0: (None, "item")}
    kinds = {0: "Node"}
    for number, (parent, label, kind) in enumerate(made, 1):
        above = number - 1 - parent % min(number, 2) if is_deep else parent % number
        tree[number] = (above, LABELS[label])
        kinds[number] = kind
    order = _breadth_first(tree)
    expected = merge({node: tree[node] for node in order}, kinds)
    place = {node: at for at, node in enumerate(order)}
    outer = [tree[node][0] for node in order]
    parents = np.array([-1 if one is None else place[one] for one in outer], np.int32)
    numbers = {
        label: int(role) << 32 | at
        for at, (label, role) in enumerate(zip(LABELS, ROLES, strict=True))
    }
    labels = np.array([numbers[tree[node][1]] for node in order])
    codes = np.array([KINDS.index(kinds[node]) for node in order], np.int32)
    merger = Merger(np.array([kind in ("list", "tuple") for kind in KINDS]))
    batches = _batches(parents, narrow)
    found = merge_steps(merger, parents, labels, codes, np.zeros(len(order), np.bool_), batches)
    words = {number: label for label, number in numbers.items()}
    for at, node in enumerate(order):
        path = []
        group = int(found[at])
        while group > 0:
            path.append((words[int(merger.labels[group])], KINDS[merger.kinds[group]]))
            group = int(merger.parents[group])
        assert path[::-1] == expected[node]


def _breadth_first(tree: dict[int, tuple[int | None, str]]) -> list[int]:
    order = [0]
    for node in order:
        order += [child for child, (parent, _) in tree.items() if parent == node]
    return order


def _batches(parents: Any, narrow: int) -> list[tuple[int, int]]:
    """Levels with enough members; what is between them is left to the plain loop."""
    depths = [0] * len(parents)
    for at, parent in enumerate(parents.tolist()):
        depths[at] = depths[parent] + 1 if parent >= 0 else 0
    found, begin = [], 0
    for _, size in sorted(Counter(depths).items()):
        if size > narrow:
            found.append((begin, begin + size))
        begin += size
    return found


def test_levels() -> None:
    """Breaks when a group comes before the one above it."""
    parents = np.array([-1, 0, 1, 0, 2, 3, 3], np.int32)
    assert [sorted(level.tolist()) for level in levels_of(parents)] == [[1, 3], [2, 5, 6], [4]]
    assert levels_of(np.array([-1], np.int32)) == []


# ── what is merged ──


def test_items_have_no_index(tmp_path: Path) -> None:
    """Breaks when items of a list are told apart, or attributes are not."""
    heap = Heap()
    records = [
        heap.instance("Record", 40, x=heap.array(3), y=heap.add("str", 50)) for _ in range(9)
    ]
    heap.module("__main__", HERE, records=heap.items("list", *records, size=200))
    assert of_main(groups_of(heap, tmp_path)) == {
        ("records",): (1, 200),
        ("records", "item"): (9, 360),
        ("records", "item", "x"): (9, 9 * 136),
        ("records", "item", "y"): (9, 450),
    }


def test_namespaces_are_part_of_their_owners(tmp_path: Path) -> None:
    """Breaks when a `__dict__` is a step, or its bytes are lost."""
    heap = Heap()
    inline = heap.instance("Trainer", 40, losses=heap.add("list", 80))
    built = heap.add("Trainer", 40, module="__main__")
    namespace = heap.refer(built, heap.add("dict", 100, flags=NAMESPACE), EdgeRole.NAMESPACE)
    heap.refer(namespace, heap.add("list", 80), EdgeRole.NAME, "losses")
    heap.module("__main__", HERE, both=heap.items("list", inline, built, size=72))
    found = of_main(groups_of(heap, tmp_path))
    assert found["both", "item"] == (2, 180)
    assert found["both", "item", "losses"] == (2, 160)


def test_closures_and_defaults(tmp_path: Path) -> None:
    """Breaks when a closure's tuple or cell shows, or a default has no name."""
    heap = Heap()
    seen, kept = heap.add("list", 80), heap.add("list", 90)
    function, cell = heap.add("function", 120), heap.add("cell", 40)
    closure = heap.refer(function, heap.add("tuple", 48), EdgeRole.CLOSURE_TUPLE)
    heap.refer(closure, cell)
    heap.refer(function, cell, EdgeRole.CLOSURE, "seen", is_shortcut=True)
    heap.refer(cell, seen, EdgeRole.CELL)
    defaults = heap.refer(function, heap.add("tuple", 48))
    heap.refer(defaults, kept)
    heap.refer(function, kept, EdgeRole.DEFAULT, "kept", is_shortcut=True)
    code = heap.refer(function, heap.add("code", 300), EdgeRole.CODE)
    constants = heap.refer(code, heap.add("tuple", 64))
    heap.refer(constants, heap.add("str", 70))
    heap.module("__main__", HERE, hook=function)
    assert of_main(groups_of(heap, tmp_path)) == {
        ("hook",): (1, 120 + 40 + 48 + 48 + 300 + 64 + 70),
        ("hook", "seen"): (1, 80),
        ("hook", "kept"): (1, 90),
    }


@pytest.mark.parametrize("is_built", [False, True])
def test_weak_containers_and_torch_modules(tmp_path: Path, is_built: bool) -> None:
    """Breaks when the table inside shows, in an instance with a `__dict__` or without."""
    heap = Heap()
    base = heap.type("WeakKeyDictionary", "weakref")
    registry = heap.instance("Registry", data=heap.items("dict", heap.add("Thing")))
    heap._mros[heap.type("Registry", "__main__")] = (heap.type("Registry", "__main__"), base)
    module = heap.type("Module", "torch.nn.modules.module")
    model = heap.add("Model", module="__main__")
    owner, role = model, EdgeRole.ATTRIBUTE
    if is_built:
        owner = heap.refer(model, heap.add("dict", 100, flags=NAMESPACE), EdgeRole.NAMESPACE)
        role = EdgeRole.NAME
    heap.refer(owner, heap.items("dict", heap.add("Linear")), role, "_modules")
    heap._mros[heap.type("Model", "__main__")] = (heap.type("Model", "__main__"), module)
    heap.module("__main__", HERE, registry=registry, model=model)
    found = of_main(groups_of(heap, tmp_path))
    assert ("registry", "item") in found
    assert ("model", "item") in found
    assert not any("data" in path or "_modules" in path for path in found)


def test_a_cache_shows_results_and_arguments(tmp_path: Path) -> None:
    """Breaks when the links and tables of an lru_cache are steps."""
    heap = Heap()
    cache = heap.add("_lru_cache_wrapper", 100, module="functools")
    table_ = heap.refer(cache, heap.add("dict", 300))
    for _ in range(3):
        link = heap.refer(table_, heap.add("_lru_list_elem", 64, module="functools"))
        heap.refer(link, heap.add("Anchors", 500))
        key = heap.refer(table_, heap.add("tuple", 56), EdgeRole.KEY)
        heap.refer(key, heap.add("Detector", 48))
    heap.module("__main__", HERE, anchors=cache)
    assert of_main(groups_of(heap, tmp_path)) == {
        ("anchors",): (1, 100 + 300 + 3 * (64 + 56)),
        ("anchors", "item"): (3, 1500),
        ("anchors", "key"): (3, 144),
    }


# ── what folds ──


def test_a_linked_list_is_one_group(tmp_path: Path) -> None:
    """Breaks when each link of a chain is a group, or a long chain takes long."""
    heap = Heap()
    head = 0
    for _ in range(20_000):
        node = heap.instance("Node", 50, value=heap.add("Value", 30))
        if head:
            heap.refer(node, head, EdgeRole.ATTRIBUTE, "next")
        head = node
    heap.module("__main__", HERE, head=head)
    path = heap.write(tmp_path / "1.heap")
    began = time.perf_counter()
    groups = read_groups(path)
    assert time.perf_counter() - began < 3
    assert groups is not None
    assert of_main(groups) == {
        ("head",): (1, 50),
        ("head", "value"): (1, 30),
        ("head", "next"): (19_999, 19_999 * 50),
        ("head", "next", "value"): (19_999, 19_999 * 30),
    }
    [chain] = [at for at in range(1, len(groups)) if groups.label(at)[1] == "next"]
    assert groups.is_folded[chain]


@pytest.mark.parametrize("kind", ["tuple", "list", "dict"])
def test_a_chain_made_of_containers_folds(tmp_path: Path, kind: str) -> None:
    """Breaks when `(value, rest)` within `(value, rest)` is a group a level; or when lists that a
    program nests are not told apart."""
    heap = Heap()
    rest = heap.items(kind, heap.add("Value"))
    for _ in range(500):
        rest = heap.items(kind, heap.add("Value"), rest)
    heap.module("__main__", HERE, rest=rest, cube=_cube(heap, 4))
    found = of_main(groups_of(heap, tmp_path))
    assert found["rest", "item"][0] == 497
    assert len([path for path in found if path[0] == "rest"]) < 12
    assert [found["cube", *["item"] * depth][0] for depth in (1, 2, 3)] == [3, 9, 27]


def _cube(heap: Heap, depth: int) -> int:
    if depth == 0:
        return heap.add("Value")
    return heap.items("list", *(_cube(heap, depth - 1) for _ in range(3)))


def test_a_tree_is_one_group(tmp_path: Path) -> None:
    """Breaks when a tree is a group a level."""
    heap = Heap()

    def grow(depth: int) -> int:
        below = [grow(depth - 1) for _ in range(2)] if depth else []
        return heap.instance("Tree", 10, children=heap.items("list", *below, size=20))

    heap.module("__main__", HERE, tree=grow(6))
    assert of_main(groups_of(heap, tmp_path)) == {
        ("tree",): (1, 10),
        ("tree", "children"): (127, 127 * 20),
        ("tree", "children", "item"): (126, 1260),
    }


def test_an_autograd_graph_is_a_few_groups(tmp_path: Path) -> None:
    """Breaks when the graph behind a running sum is a group a step."""
    heap = Heap()
    total = heap.add("Tensor", 80, module="torch")
    heap.module("__main__", HERE, total=total)
    above = total
    for step in range(300):
        add, mean = 0x10_0000 + 64 * step, 0x20_0000 + 64 * step
        heap.extra_nodes.append(ExtraNode(add, "AddBackward0", 100, "", "nodes"))
        heap.extra_nodes.append(ExtraNode(mean, "MeanBackward0", 100, "", "nodes"))
        heap.extra_nodes.append(ExtraNode(mean + 32, "Storage", 1000, "", "saved"))
        role = EdgeRole.NEXT if step else EdgeRole.GRAD_FN
        heap.extra_edges.append(ExtraEdge(above, add, role))
        heap.extra_edges.append(ExtraEdge(add, mean, EdgeRole.NEXT))
        heap.extra_edges.append(ExtraEdge(mean, mean + 32, EdgeRole.SAVED, "self"))
        above = add
    groups = groups_of(heap, tmp_path)
    mine = {path: value for path, value in table(groups).items() if "total" in dict(path)}
    sizes = sorted(value for path, value in mine.items() if path[-1] == ("next", "AddBackward0"))
    assert sizes == [(299, 29_900)]
    assert len(mine) == 5
    assert sum(size for _, size in mine.values()) == 80 + 300 * 1200


def test_parts_and_devices(tmp_path: Path) -> None:
    """Breaks when bytes of a device are counted as Python's."""
    heap = Heap()
    tensors = []
    for number in range(4):
        tensor = heap.add("Tensor", 80, module="torch")
        heap.extra_nodes.append(
            ExtraNode(0x9000 + 64 * number, "Storage", 4096, "cuda:0", "tensors")
        )
        heap.extra_edges.append(ExtraEdge(tensor, 0x9000 + 64 * number, EdgeRole.STORAGE))
        tensors.append(tensor)
    heap.module("__main__", HERE, kept=heap.items("list", *tensors, heap.array(10)))
    groups = groups_of(heap, tmp_path)
    found = {
        (groups.payload_names[kind], int(size))
        for kind, size in zip(groups.payload_kinds, groups.payload_bytes, strict=True)
    }
    assert found == {(("tensors", "cuda:0"), 4 * 4096), (("arrays", ""), 80)}


def test_the_order_of_objects_does_not_matter(tmp_path: Path) -> None:
    """Breaks when a path depends on where in the file an object is."""
    heap = Heap()
    shared = heap.add("Thing")
    heap.module(
        "__main__", HERE, first=heap.items("list", shared), second=heap.items("list", shared)
    )
    one = table(groups_of(heap, tmp_path))
    heap._objects = dict(reversed(heap._objects.items()))
    assert table(groups_of(heap, tmp_path)) == one


def test_narrow_and_wide_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a heap is grouped otherwise because it is small."""
    heap = Heap()
    heap.module("__main__", HERE, tree=_cube(heap, 5))
    path = heap.write(tmp_path / "1.heap")
    found = []
    for narrow in (0, 10, 1000):
        monkeypatch.setattr(reach, "NARROW", narrow)
        snapshot = read_snapshot(path)
        assert snapshot is not None
        found.append((table(group_objects(snapshot)), find_paths(snapshot).nodes.tolist()))
    assert found[0] == found[1] == found[2]
