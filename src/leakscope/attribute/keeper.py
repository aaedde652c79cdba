"""A holder's name in, the statement of the user's source that stores the reference out."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from leakscope.attribute.forms import Form, is_empty, kept_names
from leakscope.attribute.guard import SETUP, has_capacity_guard
from leakscope.attribute.library import library_calls, user_frames
from leakscope.attribute.program import Function, Module, Program, Scope, last_name
from leakscope.attribute.references import (
    HERE,
    Target,
    target_of,
    without_comprehensions,
)
from leakscope.attribute.stacks import Stacks
from leakscope.attribute.stores import Store, stores
from leakscope.model import Link, Site, SiteTally

__all__ = ["find_keepers", "has_capacity_guard"]

_NEVER = 9

_CONTAINER = {
    Form.ADD: 0, Form.ITEM: 0, Form.MORE: 0, Form.JOIN: 0, Form.ITEM_MORE: 1, Form.LIBRARY: 1,
    Form.VERB: 2, Form.FIXED_ITEM: 2, Form.IN_PLACE: 3, Form.GIVEN: 3, Form.AGAIN: 4, Form.SET: 5,
    Form.EMPTY: 6,
}  # fmt: skip
_GRAPH = {
    Form.AGAIN: 0, Form.JOIN: 0, Form.MORE: 0, Form.ITEM_MORE: 0, Form.IN_PLACE: 1, Form.ITEM: 2,
    Form.FIXED_ITEM: 2, Form.SET: 2, Form.ADD: 2, Form.VERB: 4, Form.GIVEN: 5, Form.LIBRARY: 5,
    Form.EMPTY: 6,
}  # fmt: skip
_OPAQUE = {
    Form.SET: 1, Form.AGAIN: 2, Form.JOIN: 2, Form.ITEM: 2, Form.FIXED_ITEM: 2, Form.ADD: 3,
    Form.LIBRARY: 4, Form.VERB: 5, Form.GIVEN: 5, Form.EMPTY: 6,
}  # fmt: skip
_PRELOADED = {
    Form.SET: 2, Form.AGAIN: 3, Form.JOIN: 1, Form.MORE: 1, Form.ADD: 1, Form.ITEM: 1,
    Form.FIXED_ITEM: 4, Form.GIVEN: 5, Form.EMPTY: 6,
}  # fmt: skip
_CYCLE = {
    Form.SET: 2, Form.ADD: 2, Form.ITEM: 2, Form.FIXED_ITEM: 2, Form.LIBRARY: 2, Form.MORE: 3,
    Form.JOIN: 3, Form.AGAIN: 4, Form.GIVEN: 5, Form.EMPTY: 6,
}  # fmt: skip
_GRADES = {
    "container": _CONTAINER, "graph": _GRAPH, "opaque": _OPAQUE, "preloaded": _PRELOADED,
    "cycle": _CYCLE,
}  # fmt: skip
"""How good an answer each form is, 0 the best, by what grows."""

_HOARDERS = frozenset({"cycle", "tee", "chain"})
_BASES = frozenset(
    {
        "dict", "list", "set", "deque", "defaultdict", "OrderedDict", "Counter", "UserDict",
        "UserList", "MutableMapping", "MutableSequence",
    }
)  # fmt: skip


def find_keepers(
    sources: Mapping[str, str], link: Link, *, grows: str, sites: Sequence[SiteTally]
) -> tuple[Site, ...]:
    """The statements that may store what `link` holds, the likeliest first; empty if none is found.

    Args:
        sources: text of the program's files, by path.
        link: the nearest link with a name at or above the thing that grows.
        grows: container, graph, opaque, cycle, preloaded or cache.
        sites: where the things kept were made, to choose between statements.
    """
    if not link.name:
        return ()
    program = Program(sources)
    if grows == "cache" or link.kind == "cache":
        found = [*_decorated(program, link)]
        if found:
            return _sites(found)
    ranking = _Ranking(program, link, grows, sites)
    target = target_of(program, link)
    candidates = list(ranking.graded(_all_stores(program, target))) if target else []
    is_foreign = program.file(link.file) is None
    if is_foreign and min((c.grade for c in candidates), default=_NEVER) > 1:
        candidates += ranking.graded(library_calls(program, link.name))
    candidates.sort(key=lambda candidate: candidate.key)
    if is_foreign and all(c.grade >= _GRADES["container"][Form.SET] for c in candidates):
        return _sites([*user_frames(program, sites), *(c.store for c in candidates)])
    return _sites([candidate.store for candidate in candidates])


def _all_stores(program: Program, target: Target) -> Iterator[Store]:
    found = list(stores(program, target))
    yield from found
    # `class Cache(dict)`: what is stored under the name is stored by the class itself.
    made = [one.value for one in found if one.form is Form.SET and isinstance(one.value, ast.Call)]
    for name in {last_name(call.func) for call in made if isinstance(call, ast.Call)}:
        for owner in program.classes.get(name, ()):
            if program.is_derived_from(owner, _BASES):
                yield from stores(program, Target("self", owner, "self", hops=1))


def _decorated(program: Program, link: Link) -> Iterator[Store]:
    """The decorator that makes a function a cache, or the call that wraps it."""
    scope = without_comprehensions(link.scope)
    module = program.file(link.file)
    named = [
        function
        for function in program.functions.get(link.name, ())
        if isinstance(function.node, Function) and function.node.decorator_list
    ]
    wanted = {scope, f"{scope}.{link.name}".lstrip("."), f"{scope}.<locals>.{link.name}"}
    named.sort(key=lambda f: (f.qualname not in wanted, f.module is not module))
    for function in named[:1]:
        decorators = function.node.decorator_list if isinstance(function.node, Function) else []
        caches = [d for d in decorators if _is_cache(d)] or decorators
        yield Store(Form.DECORATED, caches[0], function.module, HERE, 0)
    target = target_of(program, link)
    for store in stores(program, target) if target else ():
        if store.value is not None and any(_is_cache(n) for n in ast.walk(store.value)):
            yield store


def _is_cache(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    name = last_name(called).lower()
    return "cache" in name or "memo" in name


class _Candidate(NamedTuple):
    key: tuple[float, ...]
    grade: int
    store: Store


class _Ranking:
    """Which of the statements is the likeliest."""

    def __init__(
        self, program: Program, link: Link, grows: str, sites: Sequence[SiteTally]
    ) -> None:
        self._program = program
        self._grades = _GRADES.get(grows, _CONTAINER)
        self._adjust = _ADJUST.get(grows, _as_it_is)
        self._stacks = Stacks(program, sites)
        self._is_once = grows in {"opaque", "preloaded", "cycle"}

    def graded(self, found: Iterator[Store]) -> Iterator[_Candidate]:
        for store in found:
            grade = self._adjust(self._program, store, self._grades.get(store.form, _NEVER))
            if store.through_attributes:
                grade += 1
            if store.is_alias and store.form in {Form.SET, Form.EMPTY, Form.AGAIN, Form.JOIN}:
                # Another name is given another value; N keeps its own.
                grade = grade + 2 if self._is_once and store.is_origin else _NEVER
            if grade < _NEVER:
                yield _Candidate(self._key(store, grade), grade, store)

    def _key(self, store: Store, grade: int) -> tuple[float, ...]:
        rank, frame, weight = self._stacks.nearness(store)
        line = store.module.statement(store.node).lineno
        pace = 0 if self._is_once else _pace(store)
        return (
            grade, store.near, rank, frame, -weight, pace, store.hops, store.through_attributes,
            _is_plain(store), line,
        )  # fmt: skip


def _is_plain(store: Store) -> bool:
    """It stores a number or a text: more of them are seldom the trouble."""
    value = store.value
    return value is not None and (isinstance(value, ast.Constant) or not kept_names(value))


def _pace(store: Store) -> int:
    """0 for what runs again and again, 2 for what runs once an object or once a program."""
    if store.module.is_in_loop(store.node):
        return 0
    function = store.module.scope_of[store.node].function
    return 2 if function is None or function.name in SETUP else 1


def _as_it_is(program: Program, store: Store, grade: int) -> int:
    return grade


def _as_opaque(program: Program, store: Store, grade: int) -> int:
    """`itertools.cycle(loader)` before `iter(loader)` before a plain name."""
    made = isinstance(store.value, ast.Call | ast.GeneratorExp)
    if store.form is Form.SET and isinstance(store.value, ast.Call):
        names = {last_name(n.func) for n in ast.walk(store.value) if isinstance(n, ast.Call)}
        return grade - 1 if names & _HOARDERS else grade
    return grade if made or store.form is not Form.SET else grade + 1


def _as_preloaded(program: Program, store: Store, grade: int) -> int:
    """A comprehension or a call fills it at once; a loop must really be one."""
    if store.form is Form.SET and store.value is not None:
        fills = (ast.ListComp, ast.SetComp, ast.DictComp, ast.Call)
        is_filled = any(isinstance(node, fills) for node in ast.walk(store.value))
        return 0 if is_filled and not is_empty(store.value) else grade
    if store.form in {Form.ADD, Form.ITEM, Form.MORE}:
        return grade if store.module.is_in_loop(store.node) else grade + 1
    return grade


def _as_cycle(program: Program, store: Store, grade: int) -> int:
    """What stores the object itself, a bound method of it, or a function that closes over it."""
    call = store.node if isinstance(store.node, ast.Call) else None
    parts: list[ast.AST] = [*call.args] if call is not None else []
    parts += [store.value] if store.value is not None else []
    if store.form is not Form.EMPTY and any(_holds_self(program, store, p) for p in parts):
        return grade - 2
    return grade


def _holds_self(program: Program, store: Store, part: ast.AST) -> bool:
    module = store.module
    for node in ast.walk(part):
        if isinstance(node, ast.Lambda):
            return True
        if isinstance(node, ast.Name) and node in module.scope_of:
            scope = module.scope_of[node]
            if program.class_of_self(node.id, scope) is not None:
                return _is_kept(node, module)
            if _is_inner_function(program, node.id, scope):
                return True
    return False


def _is_kept(node: ast.Name, module: Module) -> bool:
    """`self` or `self.method`, but not `self.x.y` or `f(self.x)`, whose value is something else."""
    up = module.parent.get(node)
    if not isinstance(up, ast.Attribute):
        return True
    after = module.parent.get(up)
    return not (
        isinstance(after, ast.Attribute) or (isinstance(after, ast.Call) and after.func is up)
    )


def _is_inner_function(program: Program, name: str, scope: Scope) -> bool:
    owner = scope.resolve(name)
    return any(
        function.parent is owner and owner.kind == "function"
        for function in program.functions.get(name, ())
    )


_ADJUST: dict[str, Callable[[Program, Store, int], int]] = {
    "opaque": _as_opaque,
    "preloaded": _as_preloaded,
    "cycle": _as_cycle,
}


def _sites(found: Sequence[Store]) -> tuple[Site, ...]:
    """One site for each line, in the order given."""
    sites: dict[tuple[str, int], Site] = {}
    for store in found:
        module = store.module
        is_decorator = store.form is Form.DECORATED
        node = store.node if is_decorator else module.statement(store.node)
        line = getattr(node, "lineno", 0)
        function = _function_of(store, is_decorator)
        sites.setdefault(
            (module.file, line), Site(module.file, line, function, module.source(line))
        )
    return tuple(sites.values())


def _function_of(store: Store, is_decorator: bool) -> str | None:
    if is_decorator:
        decorated = store.module.statement(store.node)
        inner = [s for s in store.module.scopes if s.node is decorated]
        return inner[0].qualname if inner else None
    function = store.module.scope_of[store.node].function
    return function.qualname if function is not None else None
