"""Paths read as a programmer would say them, and later stages can search the source for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from heap_builder import HERE, LIBRARY, Heap

from leakscope.heap.groups import Groups, read_groups
from leakscope.heap.links import links_of
from leakscope.heap.merge import path_of
from leakscope.model import Link
from leakscope.record.snapshot_file import EdgeRole, ExtraEdge, ExtraNode


def links(heap: Heap, tmp_path: Path, address: int) -> tuple[Link, ...]:
    """The path of an object."""
    groups = read_groups(heap.write(tmp_path / "1.heap"))
    assert groups is not None
    return links_of(groups, path_of(groups.parents, group_of(groups, address)))


def group_of(groups: Groups, address: int) -> int:
    [position] = np.flatnonzero(groups.members.addresses == np.uint64(address))
    return int(groups.members.groups[position])


def function(heap: Heap, name: str, kind: str = "function", line: int = 12) -> int:
    """A function, generator or frame whose code is known."""
    made = heap.add(kind)
    code = heap.refer(made, heap.add("code", 200), EdgeRole.CODE)
    heap.code[code] = (name, HERE, line)
    return made


def test_globals_and_attributes(tmp_path: Path) -> None:
    """Breaks when a name is not as the source has it, or not in the scope it is in."""
    heap = Heap()
    kept = heap.items("list", heap.add("float", 24))
    heap.module("__main__", HERE, trainer=heap.instance("Trainer", losses=kept))
    module, held, attribute = links(heap, tmp_path, kept)
    assert module == Link("module train", "module", "module", "__main__", HERE)
    assert held == Link(".trainer", "Trainer", "global", "trainer", HERE)
    assert attribute == Link(".losses", "list", "attribute", "losses", HERE, "Trainer")


def test_attributes_of_a_library_are_in_its_file(tmp_path: Path) -> None:
    """Breaks when a keeper is searched in the program although the class is a library's."""
    heap = Heap()
    kept = heap.items("list")
    heap.module("library", LIBRARY)
    heap.local(heap.instance("Trainer", module="library", outputs=kept), "trainer", line=44)
    root, attribute = links(heap, tmp_path, kept)
    assert root == Link("local trainer in main()", "Trainer", "local", "trainer", HERE, "main", 44)
    assert (attribute.file, attribute.scope) == (LIBRARY, "Trainer")


def test_a_free_variable_of_a_running_function(tmp_path: Path) -> None:
    """Breaks when a variable of an outer function is called local."""
    heap = Heap()
    kept = heap.items("list")
    heap.local(kept, "seen", "main.<locals>.hook", is_free=True)
    [root] = links(heap, tmp_path, kept)
    assert (root.via, root.kind) == ("closure seen of main.<locals>.hook()", "closure")


def test_closures_and_defaults(tmp_path: Path) -> None:
    """Breaks when what a function closes over is not named by the function."""
    heap = Heap()
    hook = function(heap, "make.<locals>.hook")
    cell, seen, kept = heap.add("cell"), heap.items("list"), heap.items("list")
    heap.refer(hook, cell, EdgeRole.CLOSURE, "seen", is_shortcut=True)
    heap.refer(cell, seen, EdgeRole.CELL)
    heap.refer(hook, kept, EdgeRole.DEFAULT, "kept", is_shortcut=True)
    heap.module("__main__", HERE, hooks=heap.items("list", hook))
    name = "make.<locals>.hook"
    closure = links(heap, tmp_path, seen)[-1]
    assert closure == Link(f"closure seen of {name}()", "list", "closure", "seen", HERE, name, 12)
    default = links(heap, tmp_path, kept)[-1]
    assert default == Link(
        f"default of kept in {name}()", "list", "default", "kept", HERE, name, 12
    )


def test_functions_without_a_name_are_told_apart(tmp_path: Path) -> None:
    """Breaks when two hooks of a list are one, and a variable of one is said to be the other's."""
    heap = Heap()
    hooks, kept = [], []
    for name in ("first", "second"):
        hooks.append(function(heap, name))
        cell = heap.add("cell")
        heap.refer(hooks[-1], cell, EdgeRole.CLOSURE, "seen", is_shortcut=True)
        kept.append(heap.refer(cell, heap.items("list"), EdgeRole.CELL))
    heap.module("__main__", HERE, hooks=heap.items("list", *hooks))
    assert [links(heap, tmp_path, one)[-1].via for one in kept] == [
        "closure seen of first()",
        "closure seen of second()",
    ]


@pytest.mark.parametrize("kind", ["generator", "coroutine", "async_generator"])
def test_suspended_functions(tmp_path: Path, kind: str) -> None:
    """Breaks when a suspended function's variable is not named."""
    heap = Heap()
    stream = function(heap, "stream", kind, 30)
    item = heap.refer(stream, heap.items("list"), EdgeRole.LOCAL, "item")
    used = heap.refer(stream, heap.add("Batch"), EdgeRole.LOCAL)
    heap.local(heap.items("list", stream), "streams")
    word = kind.replace("_", " ")
    named = links(heap, tmp_path, item)[-1]
    via = f"local item in {word} stream()"
    assert named == Link(via, "list", "generator", "item", HERE, "stream", 30)
    assert links(heap, tmp_path, used)[-1].via == f"used in {word} stream()"


def test_tracebacks(tmp_path: Path) -> None:
    """Breaks when a kept exception does not lead to the variable it keeps, in one step."""
    heap = Heap()
    error, trace, inner = heap.add("ValueError"), heap.add("traceback"), heap.add("traceback")
    heap.refer(error, trace, EdgeRole.TRACEBACK)
    heap.refer(trace, inner, EdgeRole.BACK)
    frame = heap.refer(inner, function(heap, "fails", "frame", 50), EdgeRole.FRAME)
    batch = heap.refer(frame, heap.add("Batch"), EdgeRole.LOCAL, "batch")
    heap.local(heap.items("list", error), "errors")
    path = links(heap, tmp_path, batch)
    assert [link.via for link in path] == [
        "local errors in main()",
        "[x]",
        "traceback of ValueError, local batch in fails()",
    ]
    held = path[-1]
    assert (held.kind, held.name, held.file, held.scope) == ("traceback", "batch", HERE, "fails")


def test_bound_methods_and_partials(tmp_path: Path) -> None:
    """Breaks when an instance that a callback holds is not named by the method."""
    heap = Heap()
    log = function(heap, "Trainer.log")
    method = heap.add("method")
    trainer = heap.refer(method, heap.add("Trainer"), EdgeRole.SELF)
    heap.refer(method, log, EdgeRole.FUNCTION)
    partial = heap.add("partial", module="functools")
    heap.refer(partial, log, EdgeRole.FUNCTION)
    args = heap.refer(partial, heap.add("tuple"), EdgeRole.ATTRIBUTE, "args")
    argument = heap.refer(args, heap.add("Thing"))
    heap.local(heap.items("list", method, partial), "callbacks")
    held = links(heap, tmp_path, trainer)[-1]
    assert (held.via, held.kind, held.name) == (
        "self of bound method Trainer.log()",
        "bound",
        "log",
    )
    given = links(heap, tmp_path, argument)[-1]
    assert (given.via, given.kind) == ("argument of partial(Trainer.log)", "partial")


def test_items_and_keys(tmp_path: Path) -> None:
    """Breaks when an item has an index, or a part of an unknown type looks like an item."""
    heap = Heap()
    table, opaque = heap.add("dict"), heap.add("Handle", module="library")
    value = heap.refer(table, heap.add("Value"))
    key = heap.refer(table, heap.add("Key"), EdgeRole.KEY)
    inside = heap.refer(opaque, heap.add("Buffer"))
    array = heap.array(5)
    base = heap.refer(array, heap.array(500), EdgeRole.BASE)
    heap.module("__main__", HERE, table=table, handle=opaque, head=array)
    assert [links(heap, tmp_path, one)[-1].via for one in (value, key, inside, base)] == [
        "[x]",
        "key",
        "(inside)",
        ".base",
    ]
    assert links(heap, tmp_path, base)[-1].type == "ndarray [500] float64"


def test_tensors_and_graphs(tmp_path: Path) -> None:
    """Breaks when the graph behind a tensor does not read as PyTorch's own words."""
    heap = Heap()
    loss = heap.add("Tensor", 80, module="torch")
    heap.described[loss] = "Tensor [] float32, grad_fn MeanBackward0"
    heap.extra_nodes += [
        ExtraNode(0xA000, "MeanBackward0", 640, "", "nodes"),
        ExtraNode(0xB000, "Tensor", 208, "", "saved"),
    ]
    heap.described[0xB000] = "Tensor [32, 256] float32"
    heap.extra_edges += [
        ExtraEdge(loss, 0xA000, EdgeRole.GRAD_FN),
        ExtraEdge(0xA000, 0xB000, EdgeRole.SAVED, "self"),
    ]
    heap.local(heap.items("list", loss), "history", "train")
    path = links(heap, tmp_path, 0xB000)
    assert [(link.via, link.type, link.kind) for link in path] == [
        ("local history in train()", "list", "local"),
        ("[x]", "Tensor [] float32, grad_fn MeanBackward0", "item"),
        (".grad_fn", "MeanBackward0", "graph"),
        ("saved self", "Tensor [32, 256] float32", "saved"),
    ]
