"""Random graphs of live objects, of every kind that a program has."""

from __future__ import annotations

import array
import functools
import io
import itertools
import types
import weakref
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any


class Inline:
    """Its attributes stand in the instance: no `__dict__` until somebody asks."""

    def __init__(self, held: list[Any]) -> None:
        self.first = held[0] if held else None
        self.rest = held[1:]
        if len(held) > 2:
            self.third = held[2]


class Slots:
    __slots__ = ("__weakref__", "left", "right", "unset")

    def __init__(self, held: list[Any]) -> None:
        self.left = held[0] if held else None
        self.right = held[-1] if held else None


class SlotsAndDict(Slots):
    def __init__(self, held: list[Any]) -> None:
        super().__init__(held)
        self.extra = held


class Items(list[Any]):
    def __init__(self, held: list[Any]) -> None:
        super().__init__(held)
        self.note = held[:1]


class Entries(dict[Any, Any]):
    def __init__(self, held: list[Any]) -> None:
        super().__init__((f"key {i}", one) for i, one in enumerate(held))
        self.note = held[:1]


class Pair(tuple[Any, ...]):
    pass


class Number(int):
    pass


class Text(str):
    pass


class MadeError(Exception):
    pass


def with_dict(held: list[Any]) -> Inline:
    one = Inline(held)
    vars(one)["added"] = held
    return one


def with_few(held: list[Any]) -> Inline:
    one = Inline(held)
    del one.rest
    return one


def generator(held: list[Any]) -> Any:
    def run(first: Any, rest: Any) -> Any:
        unset: Any
        second = rest
        yield second
        unset = first
        yield unset

    made = run(held[0] if held else None, held)
    if len(held) != 1:
        next(made)
    return made


def coroutine(held: list[Any]) -> Any:
    @types.coroutine
    def wait() -> Any:
        yield held

    async def run(argument: Any) -> Any:
        local = argument
        await wait()
        return local

    made = run(held)
    made.send(None)
    return made


def asynchronous_generator(held: list[Any]) -> Any:
    async def run(argument: Any) -> Any:
        yield argument

    return run(held)


def closure(held: list[Any]) -> Any:
    def inner(first: Any = held, *, second: Any = tuple(held)) -> Any:
        return held, first, second

    inner.note = held  # type: ignore[attr-defined]
    return inner


def failure(held: list[Any]) -> MadeError:
    def fail(local: Any) -> None:
        kept = local
        raise MadeError(kept, "text")

    try:
        fail(held)
    except MadeError as error:
        error.add_note("a note")
        error.note = held  # type: ignore[attr-defined]
        return error
    raise AssertionError


def chained(held: list[Any]) -> MadeError:
    try:
        try:
            raise KeyError(held)
        except KeyError as error:
            raise MadeError from error
    except MadeError as error:
        return error


def weak(held: list[Any]) -> Any:
    one = Inline(held)
    return [one, weakref.ref(one, lambda _, held=held: None), weakref.proxy(one)]  # type: ignore


def new_class(held: list[Any]) -> Any:
    return type("Made", (Inline,), {"attribute": held, "method": lambda self: held})


def module(held: list[Any]) -> Any:
    made = types.ModuleType("made")
    made.value = held  # type: ignore[attr-defined]
    return made


def cached(held: list[Any]) -> Any:
    cache = functools.lru_cache(maxsize=4)(lambda key: held)
    cache(1)
    cache("text")
    return cache


def mixed_keys(held: list[Any]) -> Any:
    made: dict[Any, Any] = dict(enumerate(held))
    made["text"] = held
    made[(1, 2)] = None
    return made


def shrunk(held: list[Any]) -> Any:
    made = {f"key {i}": one for i, one in enumerate([*held, 1, 2, 3, 4])}
    del made["key 0"]
    return made


def run_time_code(held: list[Any]) -> Any:
    namespace: dict[str, Any] = {"held": held}
    exec("def made(argument=held):\n    local = held\n    return local", namespace)
    return namespace["made"]


MAKERS: list[Callable[[list[Any]], Any]] = [
    list,
    tuple,
    lambda held: dict(enumerate(held)),
    lambda held: {f"key {i}": one for i, one in enumerate(held)},
    mixed_keys,
    shrunk,
    lambda held: {id(one) for one in held},
    lambda held: frozenset(id(one) for one in held),
    deque,
    lambda held: OrderedDict(enumerate(held)),
    lambda held: defaultdict(list, {"key": held}),
    lambda held: Counter(range(len(held))),
    lambda held: ChainMap({"key": held}),
    Inline,
    with_dict,
    with_few,
    Slots,
    SlotsAndDict,
    Items,
    Entries,
    Pair,
    lambda held: Number(10 ** (10 * len(held))),
    lambda held: Text("x" * len(held)),
    generator,
    coroutine,
    asynchronous_generator,
    closure,
    failure,
    chained,
    weak,
    new_class,
    module,
    cached,
    run_time_code,
    lambda held: functools.partial(print, *held, key=held),
    lambda held: Inline(held).__init__,  # type: ignore
    lambda held: held.append,
    lambda held: property(lambda self: held),
    lambda held: staticmethod(lambda: held),
    types.CellType,
    lambda held: types.CellType(),
    lambda held: types.SimpleNamespace(attribute=held),
    lambda held: types.MappingProxyType({"key": held}),
    lambda held: iter([*held, 1]),
    lambda held: itertools.chain(held, [1]),
    lambda held: itertools.tee([*held, 1])[0],
    lambda held: (one for one in held),
    lambda held: slice(held, 1),
    lambda held: map(str, held),
    lambda held: io.BytesIO(b"x" * 100 * len(held)),
    lambda held: io.StringIO("x" * len(held)),
    lambda held: array.array("d", range(len(held))),
    lambda held: bytearray(50 * len(held)),
    lambda held: memoryview(bytearray(16)),
    lambda held: bytes(40 * len(held)),
    lambda held: 2 ** (40 * len(held)),
    lambda held: float(len(held)),
    lambda held: complex(len(held), 1),
    lambda held: "\u00e9" * len(held),
    lambda held: "\U0001f600" * len(held),
    lambda held: range(len(held)),
]


Plan = tuple[list[tuple[int, list[int]]], list[int]]
"""For each object: which maker, and which of the objects before it it refers to. Then objects that
the whole graph is added to, if they are lists."""


def build(plan: Plan) -> list[Any]:
    """A list of objects that refer to each other as the plan says."""
    made: list[Any] = []
    for which, picks in plan[0]:
        held = [made[pick % len(made)] for pick in picks] if made else []
        made.append(MAKERS[which % len(MAKERS)](held))
    for pick in plan[1]:
        if type(made[pick % len(made)]) is list:
            made[pick % len(made)].append(made)  # a cycle through the graph
    return made


def close(things: list[Any]) -> None:
    """Close what would warn when it goes."""
    for one in things:
        if isinstance(one, types.CoroutineType):
            one.close()
