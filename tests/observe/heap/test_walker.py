"""The walk over all objects: C and its Python twin agree with each other and with Python.

Under the address sanitizer, once for each change of `_walker.c`:

    CFLAGS="-O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer" \\
        python setup.py build_ext --force --build-lib /tmp/asan
    LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" \\
        ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc LEAKSCOPE_WALKER_FROM=/tmp/asan \\
        python -m pytest tests/observe/heap/test_walker.py
"""

from __future__ import annotations

import asyncio
import collections
import ctypes
import errno
import functools
import gc
import io
import json
import os
import subprocess
import sys
import textwrap
import threading
import types
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from object_graphs import Inline, Plan, Slots
from read_walk import Written, load_walker, walk_with

from leakscope.observe.heap import twin
from leakscope.record.snapshot_file import (
    CLASS,
    MODULE,
    NAMESPACE,
    TRACKED,
    EdgeRole,
)

HEAP_TYPE, MANAGED_DICT = 1 << 9, 1 << 4


walker = load_walker()
WALKS = [pytest.param(walker.walk, id="c"), pytest.param(twin.walk, id="python")]


@pytest.fixture(autouse=True)
def _steady() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    walker.use_layouts(True)
    gc.enable()


# ── graphs of random objects ──


def plans() -> st.SearchStrategy[Plan]:
    number = st.integers(0, 999)
    objects = st.lists(st.tuples(number, st.lists(number, max_size=4)), min_size=1, max_size=40)
    return st.tuples(objects, st.lists(number, max_size=4))


@pytest.mark.parametrize("check", ["same", "layouts", "sizes", "counts"])
@settings(max_examples=2, deadline=None, phases=[Phase.generate])
@given(graphs=st.lists(plans(), min_size=20, max_size=20))
def test_graphs(check: str, graphs: list[Plan]) -> None:
    """In a process of its own, whose heap is small. It says which graph fails."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "graph_checks.py"), check],
        input=json.dumps(graphs),
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]


# ── C and Python agree ──


def test_the_whole_heap_agrees() -> None:
    mine = walk_with(walker.walk)
    other = walk_with(twin.walk)
    both = [
        (one, two)
        for address, one in mine.objects.items()
        if (two := other.objects.get(address)) and two.type == one.type
    ]
    assert len(both) > 0.98 * len(mine.objects)
    kinds = {address: ".".join(kind[:2]) for address, kind in mine.types.items()}
    differ = Counter(
        kinds[one.type]
        for one, two in both
        if one.bytes != two.bytes and not mine.types[one.type][3] & MANAGED_DICT
    )
    assert differ.total() < 20, differ.most_common(5)


# ── sizes ──


def test_sizes_of_everything_that_is_loaded() -> None:
    import decimal
    import pickle
    import re
    import xml.etree.ElementTree as Tree

    extra: list[Any] = [
        decimal.Decimal("1." + "1" * 200),
        pickle.Pickler(io.BytesIO()),
        pickle.Unpickler(io.BytesIO()),
        re.compile("a(b)c").match("abc"),
        Tree.fromstring("<a><b/><c/></a>"),
        collections.deque(range(1000), 1000),
        io.BufferedReader(io.FileIO(os.devnull)),
        io.BufferedWriter(io.FileIO(os.devnull, "w")),
        "\u00e9t\u00e9".encode().decode(),
        Inline.__init__.__code__,
    ]
    str(extra[8]).encode()
    written = walk_with(walker.walk, extra)
    named = (list, tuple, dict, set, frozenset, str, bytes, bytearray, int, float, complex)
    named += (collections.deque, collections.OrderedDict, types.FunctionType, types.CodeType)  # type: ignore
    named += (types.CellType, types.MethodType, type)  # type: ignore
    checked = Counter[type]()
    for thing in [*gc.get_objects(), *extra]:
        found = written.objects.get(id(thing))
        if found is None or found.type != id(type(thing)):
            continue
        if type(thing) in named or any(thing is one for one in extra):
            assert found.bytes == sys.getsizeof(thing), type(thing)
            checked[type(thing)] += 1
    assert checked[dict] > 1000
    assert checked[type] > 500
    for one in extra[6:8]:
        one.close()


def test_dicts_of_every_size() -> None:
    dicts: list[Any] = [dict.fromkeys(range(n)) for n in range(0, 3000, 37)]
    dicts += [{f"k{i}": None for i in range(n)} for n in range(0, 3000, 41)]
    dicts += [dict.fromkeys(range(n)) for n in (0, 1, 5, 100, 70000)]
    written = walk_with(walker.walk, dicts)
    for one in dicts:
        assert written.of(one).bytes == sys.getsizeof(one)


def test_the_block_of_inline_attributes_counts() -> None:
    many_instances = [Inline([1, 2, 3]) for _ in range(100)]
    written = walk_with(walker.walk, many_instances)
    last = many_instances[-1]
    assert written.of(last).bytes >= sys.getsizeof(last) + 3 * 8


def test_an_overridden_sizeof_is_not_called() -> None:
    called = []

    class Loud(list[int]):
        def __sizeof__(self) -> int:
            called.append(self)
            return 1 << 40

    one = Loud([1, 2, 3])
    written = walk_with(walker.walk, [one])
    assert not called
    assert written.of(one).bytes < 1000


# ── labels ──


@pytest.mark.parametrize("walk", WALKS)
def test_roles_of_references(walk: Any) -> None:
    value = [1.5]

    def outer(default: Any = value, *, other: Any = value) -> Any:
        free = value

        def inner(_: Any) -> Any:
            return free

        return inner

    inner = outer()
    bound = Inline([]).__init__  # type: ignore
    partial = functools.partial(outer, value)
    instance = Slots([value])
    target = Inline([])
    gone = weakref.ref(target, inner)
    namespace = types.ModuleType("made")
    namespace.glob = value  # type: ignore[attr-defined]
    held = [outer, inner, bound, partial, instance, gone, namespace, target]
    written = walk_with(walk, held)
    cell = inner.__closure__[0]

    assert written.of(inner).role_of(inner.__code__) == (EdgeRole.CODE, "")
    assert written.of(inner).role_of(globals()) == (EdgeRole.GLOBALS, "")
    assert written.of(inner).role_of(inner.__closure__) == (EdgeRole.CLOSURE_TUPLE, "")
    (to_cell,) = written.of(inner).to(cell)
    assert (to_cell.role, to_cell.name, to_cell.shortcut) == (EdgeRole.CLOSURE, "free", True)
    assert written.of(cell).role_of(value) == (EdgeRole.CELL, "")
    assert [(one.role, one.name, one.shortcut) for one in written.of(outer).to(value)] == [
        (EdgeRole.DEFAULT, "default", True),
        (EdgeRole.DEFAULT, "other", True),
    ]
    assert written.of(bound).role_of(bound.__func__) == (EdgeRole.FUNCTION, "")
    assert written.of(bound).role_of(bound.__self__) == (EdgeRole.SELF, "")
    assert written.of(partial).role_of(outer) == (EdgeRole.FUNCTION, "")
    assert written.of(partial).role_of(partial.args) == (EdgeRole.ATTRIBUTE, "args")
    assert {(one.role, one.name) for one in written.of(instance).to(value)} == {
        (EdgeRole.ATTRIBUTE, "left"),
        (EdgeRole.ATTRIBUTE, "right"),
    }
    assert written.of(instance).role_of(Slots) == (EdgeRole.TYPE, "")
    assert written.of(gone).role_of(inner) == (EdgeRole.CALLBACK, "")
    assert written.of(namespace).role_of(vars(namespace)) == (EdgeRole.NAMESPACE, "")
    assert written.of(vars(namespace)).role_of(value) == (EdgeRole.NAME, "glob")
    assert written.of(vars(namespace)).flags & NAMESPACE
    assert written.of(namespace).flags & MODULE


@pytest.mark.parametrize("walk", WALKS)
def test_a_class(walk: Any) -> None:
    value = [1.5]
    made = type("Made", (Inline,), {"attribute": value, "not a name": value})
    written = walk_with(walk, [made, made([])])
    of = written.of(made)
    (namespace,) = (one.target for one in of.references if one.role == EdgeRole.NAMESPACE)
    assert written.objects[namespace].flags & NAMESPACE
    names = [one.name for one in written.objects[namespace].to(value)]
    assert sorted(names) == ["", "attribute"]
    assert of.flags & CLASS
    assert of.role_of(made.__mro__) == (EdgeRole.CLASS_LINK, "")
    assert of.role_of(Inline) == (EdgeRole.CLASS_LINK, "")
    module, qualified, mro, flags, _ = written.types[id(Inline)]
    assert (module, qualified) == ("object_graphs", "Inline")
    assert mro == (id(Inline), id(object))
    assert flags & HEAP_TYPE
    assert written.of(int).role_of(int.__mro__) == (EdgeRole.CLASS_LINK, "")
    assert any(one.role == EdgeRole.NAMESPACE for one in written.of(int).references)


def test_a_class_knows_its_subclasses() -> None:
    made = type("Made", (), {})
    derived = type("Derived", (made,), {})
    written = walk_with(walker.walk, [made, derived])
    links = [one.target for one in written.of(made).references if one.role == EdgeRole.CLASS_LINK]
    dicts = [one for one in links if written.objects[one].type == id(dict)]
    assert len(dicts) == 1


def test_inline_attributes_have_names_and_no_dict_is_made() -> None:
    class Fresh:
        def __init__(self, value: Any) -> None:
            self.first = self.rest = value

    value = [1.5]
    one = Fresh(value)
    setattr(one, "set_elsewhere", value)  # noqa: B010
    written = walk_with(walker.walk, [one])
    assert {(edge.role, edge.name) for edge in written.of(one).to(value)} == {
        (EdgeRole.ATTRIBUTE, "first"),
        (EdgeRole.ATTRIBUTE, "rest"),
        (EdgeRole.ATTRIBUTE, "set_elsewhere"),
    }
    assert not any(type(target) is dict for target in gc.get_referents(one))
    named = walk_with(twin.walk, [one])
    assert ("first" in {edge.name for edge in named.of(one).to(value)}) is True
    assert not any(type(target) is dict for target in gc.get_referents(one))
    namespace = vars(one)
    written = walk_with(walker.walk, [one])
    assert written.of(namespace).flags & NAMESPACE
    assert written.of(one).role_of(namespace) == (EdgeRole.NAMESPACE, "")


@pytest.mark.parametrize("walk", WALKS)
def test_exceptions_and_tracebacks(walk: Any) -> None:
    def fail() -> None:
        try:
            raise KeyError("cause")
        except KeyError as cause:
            raise ValueError("text") from cause

    with pytest.raises(ValueError, match="text") as info:
        fail()
    error = info.value
    trace = error.__traceback__
    assert trace is not None
    assert trace.tb_next is not None
    written = walk_with(walk, [error])
    of = written.of(error)
    assert of.role_of(error.args) == (EdgeRole.ARGS, "")
    assert of.role_of(trace) == (EdgeRole.TRACEBACK, "")
    assert {one.role for one in of.to(error.__cause__)} == {EdgeRole.CAUSE, EdgeRole.CONTEXT}
    assert written.of(trace).role_of(trace.tb_next) == (EdgeRole.BACK, "")
    assert written.of(trace).role_of(trace.tb_frame) == (EdgeRole.FRAME, "")


def test_locals_of_generators_and_frames_have_names() -> None:
    value, other = [1.5], [2.5]

    def run(argument: Any, unset: bool) -> Any:
        local = argument
        if unset:
            never = 1
            yield never
        yield local

    def fail(argument: Any) -> None:
        local = argument
        raise KeyError(str(local))

    waits = run(value, False)
    next(waits)
    with pytest.raises(KeyError) as info:
        fail(other)
    trace = info.value.__traceback__
    assert trace is not None
    assert trace.tb_next is not None
    frame = trace.tb_next.tb_frame
    written = walk_with(walker.walk, [waits, frame])
    edges = {(one.role, one.name) for one in written.of(waits).to(value)}
    assert {(EdgeRole.LOCAL, "argument"), (EdgeRole.LOCAL, "local")} <= edges
    assert {(one.role, one.name) for one in written.of(frame).to(other)} == {
        (EdgeRole.LOCAL, "argument"),
        (EdgeRole.LOCAL, "local"),
    }
    assert written.of(waits).to(run.__code__)[0].role == EdgeRole.CODE


@pytest.mark.parametrize("walk", WALKS)
def test_keys_of_dicts(walk: Any) -> None:
    key, value = (1.5, 2.5), [1.5]
    text = "".join(["a", " key"])
    by_text, by_any = {text: value}, {key: value, text: value}
    written = walk_with(walk, [by_text, by_any])
    assert [(one.role, one.shortcut) for one in written.of(by_text).to(text)] == [
        (EdgeRole.KEY, True)
    ]
    assert [(one.role, one.shortcut) for one in written.of(by_any).to(key)] == [
        (EdgeRole.KEY, False)
    ]
    assert written.of(by_text).role_of(value) == (EdgeRole.ITEM, "")
    assert written.of(text).bytes == sys.getsizeof(text)


# ── reference counts ──


@pytest.mark.parametrize("walk", WALKS)
def test_reference_counts_are_explained_by_edges(walk: Any) -> None:
    class Owner:
        pass

    def make() -> list[Any]:
        thing = Inline([])
        owner = Owner()
        owner.attribute = thing  # type: ignore[attr-defined]
        function = lambda default=thing: default  # noqa: E731
        return [[thing, thing], {"key": thing}, (thing,), owner, function, {1: thing}]

    holders = make()
    written = walk_with(walk, [holders])
    address = id(holders[0][0])
    edges = [edge for one in written.objects.values() for edge in one.references]
    counted = [edge for edge in edges if edge.target == address and not edge.shortcut]
    assert len(counted) == 7
    assert written.objects[address].count == 7
    outside = holders[0][0]
    again = walk_with(walk, [holders, outside, outside])
    assert again.objects[address].count == 8  # the local variable; `extra` is taken off


# ── what it leaves behind: nothing ──


def test_no_reference_is_kept() -> None:
    thing = Inline([])
    gone = weakref.ref(thing)
    before = sys.getrefcount(thing)
    written = walk_with(walker.walk, [thing], (Inline,))
    assert written.result.found == [thing] or thing in written.result.found
    del written
    assert sys.getrefcount(thing) == before
    del thing
    assert gone() is None


def test_fifty_walks_allocate_nothing_that_stays() -> None:
    with open(os.devnull, "wb") as file:
        for _ in range(5):
            walker.walk(file.fileno(), [], (), None)
        before = sys.getallocatedblocks(), len(gc.get_objects())
        for _ in range(50):
            walker.walk(file.fileno(), [], (), None)
        after = sys.getallocatedblocks(), len(gc.get_objects())
    assert abs(after[0] - before[0]) < 10
    assert abs(after[1] - before[1]) < 3


def test_working_memory_goes_back() -> None:
    def mapped() -> int:
        return int(Path("/proc/self/statm").read_text().split()[0]) * 4096

    with open(os.devnull, "wb") as file:
        walker.walk(file.fileno(), [], (), None)
        before = mapped()
        for _ in range(5):
            walker.walk(file.fileno(), [], (), None)
        assert mapped() - before < 1 << 20


def test_the_collector_is_left_as_it_was() -> None:
    with open(os.devnull, "wb") as file:
        gc.enable()
        walker.walk(file.fileno(), [], (), None)
        assert gc.isenabled()
        gc.disable()
        walker.walk(file.fileno(), [], (), None)
        assert not gc.isenabled()


@pytest.mark.parametrize("walk", WALKS)
def test_its_own_list_is_not_written(walk: Any) -> None:
    extra: list[Any] = [[1.5]]
    held = [extra]
    written = walk_with(walk, extra)
    assert id(extra) not in written.objects
    assert not written.of(held).to(extra)


def test_no_audit_event_is_raised() -> None:
    code = """
    import os, sys
    from leakscope.observe.heap import _walker
    events = []
    sys.addaudithook(lambda event, _: events.append(event))
    fd = os.open(os.devnull, os.O_WRONLY)
    del events[:]
    _walker.walk(fd, [], (), None)
    assert not events, events
    """
    _run(code)


# ── secrets ──


@pytest.mark.parametrize("walk", WALKS)
def test_no_value_is_written(walk: Any) -> None:
    secret = "hunter2_" + "correct_horse"
    number = 0x5EC2E7_5EC2E7_5EC2E7

    def hide(argument: Any = secret) -> Any:
        local = argument + "_local"

        def inner() -> Any:
            return local

        inner.__kwdefaults__ = {secret + "_default": number}
        yield inner

    waits = hide()
    inner = next(waits)
    instance = Inline([secret + "_attribute", secret.encode(), number])
    vars(with_dict := Inline([secret])).update({secret + " not an identifier": 1})
    held: list[Any] = [
        secret,
        {secret + "_key": secret + "_value", (secret,): 1},
        {secret.encode(): secret},
        ValueError(secret),
        instance,
        with_dict,
        waits,
        inner,
        collections.OrderedDict({secret + "_ordered": 1}),
        functools.partial(print, secret, sep=secret),
    ]
    globals()["_held_secret"] = secret
    written = walk_with(walk, held)
    del globals()["_held_secret"]
    assert b"hunter2" not in written.raw
    assert b"correct_horse" not in written.raw
    assert number.to_bytes(9, "little") not in written.raw


def test_names_that_could_be_data_are_not_written() -> None:
    class Fresh:  # its instances have room for inline attributes
        pass

    one = Fresh()
    for name in ("x" * 101, "has space", "\u00e4lter"):
        setattr(one, name, 1)
    written = walk_with(walker.walk, [one])
    names = {edge.name for edge in written.of(one).references}
    assert "\u00e4lter" in names
    assert not names & {"x" * 101, "has space"}


# ── other results ──


@pytest.mark.parametrize("walk", WALKS)
def test_found_are_the_instances_of_wanted_classes(walk: Any) -> None:
    class Derived(Slots):
        pass

    things = [Slots([]), Derived([]), Inline([])]
    written = walk_with(walk, things, (Slots,))
    found = written.result[3]
    assert {id(one) for one in found} >= {id(things[0]), id(things[1])}
    assert not any(type(one) is Inline for one in found)


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="extra"):
        walker.walk(1, (), (), None)
    with pytest.raises(ValueError, match="wanted"):
        walker.walk(1, [], (1,), None)
    with pytest.raises(ValueError, match="ndarray"):
        walker.walk(1, [], (), 1)
    with pytest.raises(ValueError, match="takes"):
        walker.walk(1, [])


def test_a_file_that_cannot_be_written_to() -> None:
    with open(os.devnull, "rb") as file, pytest.raises(OSError, match="Bad file") as info:
        walker.walk(file.fileno(), [], (), None)
    assert info.value.errno == errno.EBADF
    with open("/dev/full", "wb", buffering=0) as file, pytest.raises(OSError, match="space"):
        walker.walk(file.fileno(), [], (), None)


def test_a_pipe_can_be_written_to(tmp_path: Path) -> None:
    """It cannot be rewound, so the collector's lists are not followed."""
    reading, writing = os.pipe()
    pieces: list[bytes] = []

    def read() -> None:
        while piece := os.read(reading, 1 << 16):
            pieces.append(piece)

    pid = os.fork()
    if pid == 0:
        os.close(reading)
        walker.walk(writing, [], (), None)
        os._exit(0)
    os.close(writing)
    read()
    os.close(reading)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(b"".join(pieces)) > 1 << 20


def test_no_memory() -> None:
    code = """
    import os, resource
    from leakscope.observe.heap import _walker
    fd = os.open(os.devnull, os.O_WRONLY)
    used = int(open("/proc/self/statm").read().split()[0]) * 4096
    limit = resource.getrlimit(resource.RLIMIT_AS)
    failed = 0
    for room in range(0, 40 << 20, 256 << 10):
        resource.setrlimit(resource.RLIMIT_AS, (used + room, limit[1]))
        try:
            _walker.walk(fd, [], (), None)
        except MemoryError:
            failed += 1
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limit)
    assert failed > 5, failed
    assert _walker.walk(fd, [], (), None).objects > 1000
    """
    _run(code)


# ── moments ──


def test_in_the_middle_of_a_collection() -> None:
    walked: list[Written] = []

    class Dying:
        def __del__(self) -> None:
            walked.append(walk_with(walker.walk, [self]))

    one = Dying()
    one.myself = one  # type: ignore[attr-defined]
    address = id(one)
    del one
    gc.collect()
    (written,) = walked
    assert address in written.objects
    missing = [
        edge.target
        for found in written.objects.values()
        for edge in found.references
        if edge.target not in written.objects
    ]
    assert not missing


@pytest.mark.parametrize("layouts", [True, False])
def test_every_edge_leads_to_an_object(layouts: bool) -> None:
    walker.use_layouts(layouts)
    written = walk_with(walker.walk)
    for found in written.objects.values():
        for edge in found.references:
            assert edge.target in written.objects
        assert found.type in written.types
        assert found.type in written.objects


def test_frozen_objects_are_seen() -> None:
    kept = [Inline([])]
    gc.freeze()
    try:
        written = walk_with(walker.walk)
    finally:
        gc.unfreeze()
    assert written.of(kept).flags & TRACKED
    assert written.of(kept[0]).flags & TRACKED


def test_garbage_is_seen() -> None:
    one = Inline([])
    one.rest = one  # type: ignore[assignment]
    address = id(one)
    del one
    written = walk_with(walker.walk)
    assert written.objects[address].count == 1


def test_while_other_threads_make_objects() -> None:
    stop = threading.Event()
    rounds = Counter[int]()
    gc.enable()  # classes are cycles

    def busy() -> None:
        while not stop.is_set():
            kept: list[Any] = []
            for i in range(50):
                kept.append({"a": i, i: [i]})
                kept.append(type(f"C{i}", (), {"x": i})())
                kept.append(Inline([kept, i]))
                kept.append(one for one in kept)
                kept.append(functools.partial(busy))
            rounds[threading.get_ident()] += 1

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    with open(os.devnull, "wb") as file:
        for _ in range(30):
            walker.walk(file.fileno(), [], (Inline,), None)
    for _ in range(3):
        walk_with(walker.walk)
    stop.set()
    for thread in threads:
        thread.join()
    assert len(rounds) == 3


def test_after_awaiting_futures() -> None:
    """In Python 3.12 the module _asyncio shows the collector iterators that it has freed."""

    async def wait() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(20):
            future = loop.create_future()
            loop.call_soon(future.set_result, None)
            await future

    asyncio.run(wait())
    module = sys.modules["_asyncio"]
    for walk in (walker.walk, twin.walk):
        written = walk_with(walk, [module])
        assert written.of(module).role_of(vars(module)) == (EdgeRole.NAMESPACE, "")
    asyncio.run(wait())


def test_classes_that_are_not_made_ready() -> None:
    """An abstract class of ctypes has a namespace that is no plain dict."""

    class Point(ctypes.Structure):
        _fields_ = (("x", ctypes.c_int),)

    written = walk_with(walker.walk, [Point, Point(1)])
    assert written.types[id(Point)][:2] == (
        __name__,
        "test_classes_that_are_not_made_ready.<locals>.Point",
    )


def test_dicts_of_threads() -> None:
    local = threading.local()
    local.value = [1.5]
    assert any(
        any(type(value) is dict for value in one.values()) or one for one in walker.thread_dicts()
    )
    assert all(type(one) is dict for one in walker.thread_dicts())


def test_the_layouts_are_known() -> None:
    """Of the Pythons this is tested with; another one may say False and still works."""
    assert walker.layout_ok
    assert walker.links_ok or sys.version_info >= (3, 14)


# ── NumPy ──


@pytest.mark.parametrize("walk", WALKS)
def test_arrays(walk: Any) -> None:
    numpy = pytest.importorskip("numpy")
    plain = numpy.zeros((3, 5), dtype=numpy.float32)
    view = plain[1:, ::2]
    inside = Inline([])
    things = numpy.array([inside, None, inside], dtype=object)

    class Derived(numpy.ndarray):  # type: ignore[misc, name-defined]
        pass

    derived = plain.view(Derived)
    derived.note = inside
    for one in (plain, view, things):
        assert walker.check_ndarray(one, one.ctypes.data, one.ndim, one.base, one.dtype)
    assert not walker.check_ndarray(plain, plain.ctypes.data + 8, 2, None, plain.dtype)
    assert not walker.check_ndarray(plain, plain.ctypes.data, 2, plain, plain.dtype)
    written = walk_with(walk, [plain, view, things, derived], (), numpy.ndarray)
    data = plain.ctypes.data
    assert written.arrays[id(plain)] == (data, 0, id(plain.dtype), plain.flags.num, 2, 3, 5)
    assert written.arrays[id(view)][:2] == (view.ctypes.data, id(plain))
    assert written.arrays[id(derived)][1] == id(plain)
    assert written.of(view).role_of(plain) == (EdgeRole.BASE, "")
    assert [one.role for one in written.of(things).to(inside)] == [EdgeRole.ELEMENT] * 2
    assert not any(one.shortcut for one in written.of(things).references)
    assert written.of(plain).bytes < 200
    assert any(one is plain.dtype for one in written.result[4])
    assert any(edge.target == id(plain) for edge in written.of(derived).references)


# ── slots of classes that the collector does not know ──


@pytest.mark.parametrize("walk", WALKS)
def test_structs_without_gc(walk: Any) -> None:
    import msgspec

    class Plain(msgspec.Struct, gc=False):
        field: Any
        other: Any = None

    value = [1.5]
    one = Plain(value)
    written = walk_with(walk, [one])
    assert written.of(one).role_of(value) == (EdgeRole.ATTRIBUTE, "field")
    assert not written.of(one).flags & TRACKED


def _run(code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
