"""Each way to hold an object is found and named as the program has it.

The objects live in functions without `assert`: pytest rewrites the others to call `locals()`, and
the variables of such functions are not read.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import itertools
import logging
import logging.handlers
import queue
import sys
import threading
import time
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path as FilePath
from typing import Any, NamedTuple

import pytest

from leakscope.model import Link
from leakscope.observe.anatomy import describe
from leakscope.observe.holders import Path, find_path

HERE = __file__
MODULE = __name__


class Thing:
    pass


class Trainer:
    registry: list[Any] = []  # noqa: RUF012 - that it is shared is the point

    def __init__(self) -> None:
        self.losses = [Thing()]

    def log(self) -> None: ...

    def look(self) -> Path:
        return find_path(self.losses[0])


class Slotted:
    __slots__ = ("__weakref__", "item")


class Pair(NamedTuple):
    left: Any
    right: Any


class Detector:
    @functools.lru_cache(maxsize=8)  # noqa: B019 - that it keeps self is the point
    def anchors(self, size: int) -> Any:
        return Thing()

    @functools.cache  # noqa: B019
    def grid(self, size: int) -> Any:
        return [Thing()]


things: list[Any] = []
by_name: dict[str, Any] = {}
by_number: dict[Any, Any] = {}
registry: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    if sys.gettrace() is not None or sys.getprofile() is not None:
        pytest.skip("somebody traces the tests themselves")
    yield
    for table in (things, by_name, by_number, Trainer.registry):
        table.clear()
    Detector.anchors.cache_clear()
    Detector.grid.cache_clear()


def said(path: Path) -> list[str]:
    return [link.via for link in path.links]


def last_but(path: Path, count: int) -> Link:
    return path.links[-1 - count]


# ── modules and classes ──


def test_global() -> None:
    """Breaks when a module's global is not named, or not by its file."""
    things.append(Thing())
    path = find_path(things[0])
    assert said(path) == [f"module {MODULE}", ".things", "[x]"]
    assert path.is_rooted
    module, held, item = path.links
    assert (module.kind, module.name, module.type) == ("module", MODULE, "module")
    assert (held.kind, held.name, held.file, held.scope) == ("global", "things", HERE, "")
    assert (item.kind, item.type, held.type) == ("item", "Thing", "list")


def test_main_is_called_by_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when the program's own module is shown as `__main__`."""
    main = types.ModuleType("__main__")
    main.__file__ = "/there/train.py"
    vars(main)["losses"] = [Thing()]
    monkeypatch.setitem(sys.modules, "__main__", main)
    path = find_path(vars(main)["losses"][0])
    assert said(path) == ["module train", ".losses", "[x]"]
    assert (path.links[0].name, path.links[1].file) == ("__main__", "/there/train.py")


def test_class_attribute() -> None:
    """Breaks when what a class keeps is not found at the class."""
    Trainer.registry.append(Thing())
    path = find_path(Trainer.registry[0])
    assert said(path) == ["class Trainer", ".registry", "[x]"]
    held = path.links[1]
    assert (held.kind, held.name, held.scope, held.file) == (
        "attribute",
        "registry",
        "Trainer",
        HERE,
    )


# ── instances and containers ──


@pytest.mark.parametrize("has_dict", [False, True])
def test_attribute(has_dict: bool) -> None:
    """Breaks when an attribute is not named, with its dict built or without."""
    things.append(Trainer())
    if has_dict:
        vars(things[0])
    path = find_path(things[0].losses[0])
    assert said(path) == [f"module {MODULE}", ".things", "[x]", ".losses", "[x]"]
    held = last_but(path, 1)
    assert (held.kind, held.name, held.scope, held.file) == ("attribute", "losses", "Trainer", HERE)


def test_slot_and_field() -> None:
    """Breaks when slots and fields of a named tuple have no name."""
    slotted = Slotted()
    slotted.item = Pair(0, Thing())  # type: ignore[attr-defined]
    things.append(slotted)
    assert said(find_path(things[0].item.right))[-2:] == [".item", ".right"]


@pytest.mark.parametrize("make", [list, tuple, set, frozenset, deque])
def test_items(make: Callable[[Any], Any]) -> None:
    """Breaks when an item is numbered, or its container not seen."""
    things.append(make([Thing()]))
    assert said(find_path(next(iter(things[0]))))[-2:] == ["[x]", "[x]"]


def test_dicts() -> None:
    """Breaks when a record loses its keys, a table gains them, or a key is taken for a value."""
    by_name["best"] = Thing()
    assert said(find_path(by_name["best"])) == [f"module {MODULE}", ".by_name", '["best"]']
    by_number.update((number, Thing()) for number in range(40))
    assert said(find_path(by_number[7]))[-1] == "[x]"
    by_number.clear()
    by_number[Thing()] = 1
    assert said(find_path(next(iter(by_number))))[-1] == "key"


def test_dict_of_plain_values() -> None:
    """Breaks when a holder that the collector does not follow is missed."""
    things.append({number: bytearray(9) for number in range(20)})
    assert not gc.is_tracked(things[0])
    assert said(find_path(things[0][3])) == [f"module {MODULE}", ".things", "[x]", "[x]"]
    assert said(_keeps_plain_values()) == ["local cache in _keeps_plain_values()", "[x]"]


def _keeps_plain_values() -> Path:
    cache = {number: bytearray(9) for number in range(20)}
    return find_path(cache[3])


def test_a_list_that_a_library_made_for_itself_is_not_the_holder() -> None:
    """Breaks when `self.table = numpy.vstack([self.table, row])`, looked at within `vstack`, is
    held by the list: the collector does not see the instance's dict, but sees that list."""
    things.append({number: bytearray(9) for number in range(20)})
    assert said(_looked_at_within_a_library()) == [f"module {MODULE}", ".things", "[x]", "[x]"]


def _looked_at_within_a_library() -> Path:
    library: dict[str, Any] = {}
    code = "def stack(parts, look):\n    return look(parts[0])"
    exec(compile(code, functools.__file__, "exec"), library)
    path: Path = library["stack"]([things[0][3]], find_path)
    return path


def test_weak_keyed_registry() -> None:
    """Breaks when the dict inside a WeakKeyDictionary shows."""
    registry[Trainer] = Thing()
    path = find_path(registry[Trainer])
    del registry[Trainer]
    assert said(path) == [f"module {MODULE}", ".registry", "[x]"]
    assert path.links[1].type == "WeakKeyDictionary"


# ── running functions ──


def test_local() -> None:
    """Breaks when a running function's variable is not a root."""
    path = _keeps_locally()
    assert said(path) == ["local kept in _keeps_locally()", "[x]"]
    root = path.links[0]
    assert (root.kind, root.name, root.scope, root.file) == (
        "local",
        "kept",
        "_keeps_locally",
        HERE,
    )
    assert root.line == _keeps_locally.__code__.co_firstlineno + 2
    assert root.type == "list"


def _keeps_locally() -> Path:
    kept = [Thing()]
    return find_path(kept[0])


def test_self_of_a_running_method() -> None:
    """Breaks when an instance that only its own method holds has no root."""
    path = Trainer().look()
    assert said(path) == ["local self in Trainer.look()", ".losses", "[x]"]


def test_attribute_is_told_rather_than_self() -> None:
    """Breaks when a path begins at `self` although somebody else has the instance."""
    things.append(Trainer())
    assert said(things[0].look())[:2] == [f"module {MODULE}", ".things"]
    assert said(_has_trainer()) == ["local trainer in _has_trainer()", ".losses", "[x]"]


def _has_trainer() -> Path:
    trainer = Trainer()
    return trainer.look()


# ── code ──


def test_closure() -> None:
    """Breaks when what a hook closes over is not named by the hook."""
    things.append(_make_hook())
    path = find_path(things[0].__closure__[0].cell_contents[0])
    assert said(path)[1:] == [
        ".things",
        "[x]",
        "closure seen of _make_hook.<locals>.hook()",
        "[x]",
    ]
    held = last_but(path, 1)
    assert (held.kind, held.name, held.file) == ("closure", "seen", HERE)
    assert held.scope == "_make_hook.<locals>.hook"


def _make_hook(*args: Any, **kwargs: Any) -> Callable[..., Any]:
    seen: list[Any] = [Thing()]

    def hook(*args: Any, **kwargs: Any) -> Any:
        seen.append(args)

    return hook


def test_free_variable_of_a_running_function() -> None:
    """Breaks when a closure that runs, and that nobody else holds, is not found."""
    path = _make_looking_closure()()
    assert path.links[0].via == "closure seen of _make_looking_closure.<locals>.<lambda>()"


def _make_looking_closure() -> Callable[[], Path]:
    seen = [Thing()]
    return lambda: find_path(seen[0])


def test_default() -> None:
    """Breaks when a mutable default is not named by its parameter."""

    def keep(size: int, kept: list[Any] = [Thing()], *, more: Any = [Thing()]) -> None: ...  # noqa: B006, B008

    things.append(keep)
    assert keep.__defaults__ is not None
    assert keep.__kwdefaults__ is not None
    path = find_path(keep.__defaults__[0][0])
    assert last_but(path, 1).via == f"default of kept in {keep.__qualname__}()"
    assert last_but(path, 1).kind == "default"
    assert last_but(find_path(keep.__kwdefaults__["more"][0]), 1).name == "more"


def test_bound_method() -> None:
    """Breaks when an instance that a callback holds is not named by the method."""
    things.append(Trainer().log)
    held = find_path(things[0].__self__).links[-1]
    assert (held.via, held.kind) == ("self of bound method Trainer.log()", "bound")
    items: list[Any] = [Thing()]
    things.append(items.append)
    del items
    assert find_path(things[1].__self__).links[-1].via == "self of bound method list.append()"


def test_partial() -> None:
    """Breaks when an argument of a partial is not found."""
    things.append(functools.partial(_make_hook, Thing(), last=Thing()))
    for held in (
        find_path(things[0].args[0]).links[-1],
        find_path(things[0].keywords["last"]).links[-1],
    ):
        assert (held.via, held.kind) == ("argument of partial(_make_hook)", "partial")
    things.append(functools.partial(print, Thing()))
    assert find_path(things[1].args[0]).links[-1].via == "argument of partial(print)"


@pytest.mark.parametrize("method", ["anchors", "grid"])
def test_cache(method: str) -> None:
    """Breaks when a result or an argument that lru_cache keeps is not named by the function."""
    detector = Detector()
    weak = weakref.ref(detector)
    result = weakref.ref(Thing)
    getattr(detector, method)(3)
    del detector, result
    path = find_path(weak())
    assert said(path) == [f"lru_cache of Detector.{method}", "key"]
    root = path.links[0]
    assert (root.kind, root.name, root.scope, root.file) == ("cache", method, "Detector", HERE)
    assert root.line > 0
    assert root.type == "lru_cache"
    assert said(find_path(weak().anchors(3)))[0] == "lru_cache of Detector.anchors"  # type: ignore[union-attr]
    assert said(find_path(weak().grid(3)[0]))[1:] == ["[x]", "[x]"]  # type: ignore[union-attr]


def test_cache_of_a_function() -> None:
    """Breaks when a cached function's scope is not the function."""

    @functools.cache
    def build(size: int) -> Any:
        return Thing()

    root = find_path(build(2)).links[0]
    assert (root.name, root.scope) == ("build", build.__qualname__)
    assert find_path(build).links[0] == root  # asked for itself, a cache is its own root


def _stream() -> Iterator[Any]:
    item = [Thing()]
    yield item


def test_generator() -> None:
    """Breaks when a suspended generator's variable is not named."""
    things.append(_stream())
    path = find_path(next(things[0])[0])
    assert said(path)[1:] == [".things", "[x]", "local item in generator _stream()", "[x]"]
    held = last_but(path, 1)
    assert (held.kind, held.name, held.scope) == ("generator", "item", "_stream")


def test_generator_of_a_running_loop() -> None:
    """Breaks when a generator that only a `for` holds is called native."""
    assert said(_loops()) == ["held by a running loop", "local item in generator _stream()", "[x]"]


def _loops() -> Path:
    for item in _stream():
        weak = weakref.ref(item[0])
        del item
        return find_path(weak())
    return Path((), False)


def test_coroutine_of_a_task() -> None:
    """Breaks when what an asyncio task waits with is not named."""

    async def fetch() -> None:
        batch = [Thing()]
        weak.append(weakref.ref(batch[0]))
        await asyncio.sleep(0)
        del batch

    async def main() -> None:
        task = asyncio.create_task(fetch())
        await asyncio.sleep(0)
        path.append(find_path(weak[0]()))
        await task

    weak: list[Any] = []
    path: list[Path] = []
    asyncio.run(main())
    assert last_but(path[0], 1).name == "batch"
    assert last_but(path[0], 1).via.startswith("local batch in coroutine test_coroutine")
    assert path[0].is_rooted


def test_traceback() -> None:
    """Breaks when a kept exception does not lead to the variable it keeps."""
    try:
        _fails()
    except ValueError as error:
        things.append(error)
    trace = things[0].__traceback__.tb_next
    weak = weakref.ref(trace.tb_frame.f_locals["batch"])
    del trace
    path = find_path(weak())
    assert said(path)[1:] == [
        ".things",
        "[x]",
        "traceback of ValueError, local batch in _fails()",
    ]
    held = path.links[-1]
    assert (held.kind, held.name, held.scope, held.file) == ("traceback", "batch", "_fails", HERE)
    assert held.line == _fails.__code__.co_firstlineno + 2


def _fails() -> None:
    batch = Thing()
    raise ValueError(id(batch))


def test_context_of_an_exception() -> None:
    """Breaks when the exception behind an exception is not named."""
    try:
        try:
            _fails()
        except ValueError as inner:
            raise KeyError from inner
    except KeyError as error:
        things.append(error)
    path = find_path(things[0].__context__)
    assert path.links[-1].via in (".__context__", ".__cause__")


# ── threads, queues and other tables ──


class _Feeder(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="feeder", daemon=True)
        self.seen = [Thing()]
        self.is_over = threading.Event()

    def run(self) -> None:
        self.is_over.wait()


def test_thread() -> None:
    """Breaks when a live thread is not a root by its name."""
    weak: Any = weakref.ref(_start(_Feeder()))
    path = find_path(weak().seen[0])
    feeder = weak()
    feeder.is_over.set()
    feeder.join()
    assert said(path) == ["thread feeder", ".seen", "[x]"]
    assert (path.links[0].kind, path.links[0].name) == ("thread", "feeder")
    things.append(feeder)
    del feeder
    assert said(find_path(weak().seen[0]))[1] == ".things"  # it is over: its holder is the root


def _start(thread: threading.Thread) -> threading.Thread:
    thread.start()
    return thread


def test_thread_local() -> None:
    """Breaks when the tables behind threading.local show."""
    things.append(threading.local())
    things[0].buffer = [Thing()]
    path = find_path(things[0].buffer[0])
    assert said(path)[1:] == [".things", "[x]", ".buffer (of one thread)", "[x]"]


def test_logging_handler() -> None:
    """Breaks when what a handler buffers is not found at its logger."""
    logger = logging.getLogger("test_holders")
    logger.propagate = False  # pytest keeps records too, and so do torch's handlers
    logger.addHandler(logging.handlers.MemoryHandler(1000))
    logger.warning("kept")
    weak = weakref.ref(logger.handlers[0].buffer[0])  # type: ignore[attr-defined]
    path = find_path(weak())
    logger.handlers.clear()
    assert said(path) == ["logger test_holders", ".handlers", "[x]", ".buffer", "[x]"]


@pytest.mark.parametrize("make", [queue.Queue, queue.SimpleQueue])
def test_queue(make: Callable[[], Any]) -> None:
    """Breaks when an item that waits in a queue is not found at the queue."""
    thing = Thing()
    weak = weakref.ref(thing)
    things.append(make())
    things[0].put(thing)
    del thing
    path = find_path(weak())
    middle = [".queue"] if make is queue.Queue else []
    assert said(path)[1:] == [".things", "[x]", *middle, "[x]"]


def test_executor() -> None:
    """Breaks when the work that waits in an executor is not found."""
    is_over = threading.Event()
    executor = ThreadPoolExecutor(1)
    executor.submit(is_over.wait)
    executor.submit(print, Thing())
    things.append(executor)
    found = [one for one in gc.get_objects() if type(one) is Thing]
    weak = weakref.ref(found[0])
    executor.submit(len, ())
    del found, executor
    path = find_path(weak())
    things[0].shutdown(wait=False, cancel_futures=True)
    is_over.set()
    assert path.is_rooted
    assert "._work_queue" in said(path)


@pytest.mark.parametrize("kind", ["cycle", "_tee"])
def test_itertools(kind: str) -> None:
    """Breaks when what itertools saves for later is not found."""
    source = iter([Thing(), Thing()])
    if kind == "cycle":
        things.append(itertools.cycle(source))
        weak = weakref.ref(next(things[0]))
    else:
        things.extend(itertools.tee(source))
        weak = weakref.ref(next(things[0]))
    next(things[0])
    del source
    path = find_path(weak())
    assert said(path)[1:] == [".things", "[x]", "[x]"]
    assert last_but(path, 1).type == kind


@pytest.mark.parametrize("passed", [3, 57, 300])
def test_the_last_end_of_a_tee_holds_what_the_first_has_passed(passed: int) -> None:
    """Breaks when the end that runs ahead is named, because it refers to the same block of items
    or to one that is nearer."""
    ahead, behind = itertools.tee(Thing() for _ in range(1000))
    next(behind)
    for _ in range(passed):
        weak = weakref.ref(next(ahead))
    path = find_path(weak())
    test = "test_the_last_end_of_a_tee_holds_what_the_first_has_passed"
    assert said(path) == [f"local behind in {test}()", "[x]"]
    assert last_but(path, 1).type == "_tee"
    next(ahead)


def test_context_variable() -> None:
    """Breaks when the nodes of a context show, or the variable is not named."""
    variable: contextvars.ContextVar[Any] = contextvars.ContextVar("request")
    context = contextvars.copy_context()
    context.run(variable.set, [Thing()])
    things.append(context)
    del context
    path = find_path(things[0][variable][0])
    assert said(path)[1:] == [".things", "[x]", "context variable request", "[x]"]


# ── no root ──


def test_native() -> None:
    """Breaks when an object that only C holds is said to have a Python holder."""
    thing = Thing()
    weak = weakref.ref(thing)
    ctypes = pytest.importorskip("ctypes")
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    del thing
    path = find_path(weak())
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(weak()))
    assert [(link.via, link.kind) for link in path.links] == [("held by native code", "native")]
    assert path.is_rooted
    assert weak() is None


def test_garbage() -> None:
    """Breaks when a cycle that nobody holds is given a holder, or does not show."""
    gc.disable()
    try:
        weak = weakref.ref(_make_cycle())
        path = find_path(weak().losses[0])  # type: ignore[union-attr]
    finally:
        gc.enable()
        gc.collect()
    assert said(path) == ["held by its own cycle only", ".me", ".losses", "[x]"]
    assert path.links[0].kind == "garbage"
    assert find_path(Thing()).links[0].via == "held by nothing any more"


def _make_cycle() -> Trainer:
    trainer: Any = Trainer()
    trainer.me = trainer
    return trainer  # type: ignore[no-any-return]


def test_deadline() -> None:
    """Breaks when a search goes on after its time, or claims a root it did not reach."""
    things.append(Thing())
    path = find_path(things[0], deadline_ns=time.monotonic_ns() - 1)
    assert (path.is_rooted, path.rounds) == (False, 0)
    assert "time" in path.why


def test_too_deep() -> None:
    """Breaks when a chain longer than the search claims a root."""
    chain: Any = Thing()
    weak = weakref.ref(chain)
    for _ in range(60):
        chain = [chain]
    things.append(chain)
    del chain
    path = find_path(weak())
    assert not path.is_rooted
    assert "steps" in path.why
    assert said(path)[-1] == "[x]"


def test_frozen_heap() -> None:
    """Breaks when a holder hidden by gc.freeze() is taken for native code."""
    spare = [[] for _ in range(11_000)]  # type: ignore[var-annotated]
    things.append(Thing())
    gc.freeze()
    try:
        path = find_path(things[0])
    finally:
        gc.unfreeze()
    assert not path.is_rooted
    assert "gc.freeze()" in path.why
    assert spare


# ── what is preferred, and what never shows ──


def test_prefers_the_users_holder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a library's table is told although the user's own code holds the object too."""
    things.append(Thing())
    monkeypatch.setattr(logging, "aaa_table", [things[0]], raising=False)
    assert said(find_path(things[0]))[0] == f"module {MODULE}"
    things.clear()
    path = find_path(logging.aaa_table[0])  # type: ignore[attr-defined]
    assert said(path) == ["module logging", ".aaa_table", "[x]"]


def test_prefers_a_name_over_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when the history of an interactive session is told as the holder."""
    by_name["model"] = OrderedDict(first=Thing())
    monkeypatch.setattr(sys.modules[MODULE], "_12", by_name["model"]["first"], raising=False)
    path = find_path(by_name["model"]["first"])
    assert said(path) == [f"module {MODULE}", ".by_name", '["model"]', '["first"]']


def test_leaves_the_caller_out() -> None:
    """Breaks when something of the caller's is told as a holder."""
    table = [Thing()]
    things.append(table)
    path = find_path(table[0], is_ours=lambda one: one is table)
    assert said(path) == ["held by nothing any more"]


def test_leaves_our_own_modules_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a table of leakscope is told as a holder of the program's objects."""
    ours = sys.modules[find_path.__module__]
    monkeypatch.setattr(ours, "table", [Thing()], raising=False)
    path = find_path(vars(ours)["table"][0])
    assert "leakscope" not in "".join(said(path))
    things.append(vars(ours)["table"][0])
    assert said(find_path(things[0]))[0] == f"module {MODULE}"


def test_keeps_nothing_alive() -> None:
    """Breaks when the search itself keeps what it looked at."""
    things.append(Trainer())
    weak = weakref.ref(things[0].losses[0])
    gc.disable()
    try:
        find_path(things[0].losses[0])
        things.clear()
        assert weak() is None
    finally:
        gc.enable()


asked: list[str] = []
is_armed = False
_QUESTIONS = (
    *("__eq__", "__ne__", "__hash__", "__len__", "__bool__", "__iter__", "__contains__"),
    *("__getitem__", "__repr__", "__str__", "__format__", "__index__", "__call__"),
    *("__getattr__", "__getattribute__", "__instancecheck__", "__subclasscheck__"),
)


def _question(name: str, answer: Any) -> Any:
    def ask(self: Any, *args: Any) -> Any:
        if is_armed:
            asked.append(name)
            raise AssertionError(name)
        return answer(self, *args)

    return ask


def _make_hostile(base: type) -> dict[str, Any]:
    """A class body that answers as `base` does until it is armed, and then counts and raises."""
    names = [name for name in _QUESTIONS if hasattr(base, name) or name not in dir(type)]
    body = {name: _question(name, getattr(base, name, None)) for name in names}
    body["__bool__"] = _question("__bool__", lambda self: True)
    return body


Meta = type("Meta", (type,), _make_hostile(type))
Hostile = Meta(
    "Hostile",
    (),
    {**_make_hostile(object), "__class__": property(_question("__class__", type))},
)
hostile_things: list[Any] = []


@pytest.mark.parametrize("place", ["target", "attribute", "table", "local"])
def test_runs_no_code_of_the_program(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when an object of the program is asked anything at all."""
    hostile: Any = object.__new__(Hostile)
    object.__setattr__(hostile, "item", [Thing()])
    hostile_things.append([hostile, {1: hostile, "a": hostile}, {hostile: hostile}, Thing()])
    weak = weakref.ref(object.__getattribute__(hostile, "item")[0])
    asked.clear()
    monkeypatch.setitem(globals(), "is_armed", True)
    path = _look_at(place, hostile, weak)
    monkeypatch.undo()
    hostile_things.clear()
    del hostile
    assert asked == []
    assert path.is_rooted
    assert path.links[-1].type in ("Hostile", "Thing")


def _look_at(place: str, hostile: Any, weak: Any) -> Path:
    if place == "target":
        return find_path(hostile)
    if place == "local":
        beside = [hostile, Thing()]
        return find_path(beside[1])
    return find_path(weak() if place == "attribute" else hostile_things[0][3])


def test_words() -> None:
    """Breaks when an object's own words are used for it, or a class is not named."""
    some: list[Any] = [[1], {}, Thing(), Thing, sys, 3]
    assert [describe(one) for one in some] == [
        "list",
        "dict",
        "Thing",
        "class",
        "module",
        "int",
    ]
    assert describe(Detector.anchors) == "lru_cache"


@pytest.mark.torch
def test_torch_module_and_hook() -> None:
    """Breaks when torch's tables show, or a hook's closure is not followed to its module."""
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    model.register_buffer("seen", torch.zeros(3))
    things.append(model)
    del model
    things[0].register_forward_hook(_make_hook())
    assert said(find_path(things[0].seen))[-2:] == ["[x]", ".seen"]
    hook: Any = weakref.ref(next(iter(things[0]._forward_hooks.values())))
    path = find_path(hook().__closure__[0].cell_contents[0])
    assert "._forward_hooks" in said(path)
    loss = things[0](torch.ones(1, 2)).mean()
    assert describe(loss) == "Tensor [] float32, grad_fn MeanBackward0"
    assert describe(things[0][0].weight) == "Parameter [2, 2] float32"
    numpy = pytest.importorskip("numpy")
    assert describe(numpy.zeros((2, 3), "f4")) == "ndarray [2, 3] float32"


def test_imports_nothing_heavy() -> None:
    """Breaks when a module of the search imports more than the standard library and msgspec."""
    folder = FilePath(sys.modules[find_path.__module__].__file__ or "").parent
    for name in ("holders", "untracked", "links", "links_in_code", "roots", "anatomy", "frames"):
        lines = (folder / f"{name}.py").read_text().splitlines()
        imports = [line.split()[1] for line in lines if line.startswith(("import ", "from "))]
        assert not {"inspect", "torch", "numpy", "logging"} & set(imports)
