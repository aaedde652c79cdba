"""A store in, whether it lasts out: who keeps the container, and whether anything empties it."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import NamedTuple

from leakscope.lint.outline import (
    Function,
    Line,
    Loop,
    Outline,
    Scope,
    dotted,
    expressions,
    key_of,
    last_name,
    pairs_of,
    targets_of,
)

_MAKERS = frozenset({"list", "dict", "set", "defaultdict", "OrderedDict", "deque", "Counter",
                     "Queue", "SimpleQueue", "WeakValueDictionary"})  # fmt: skip
_EMPTIED = frozenset({"clear", "pop", "popleft", "popitem", "remove", "discard", "reset"})
_FIRST = frozenset({"__init__", "__post_init__", "__new__", "setUp"})
_STEPS = frozenset({"backward", "step", "zero_grad"})


class Store(NamedTuple):
    """A statement that puts something into a container."""

    line: Line
    node: ast.AST
    container: ast.expr
    value: ast.expr
    how: str
    """append, item, or sum (`x = x + […]`)."""


class Containers:
    """What is put where in one file, and what is taken out."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self._steps: dict[Loop, bool] = {}

    @cached_property
    def stores(self) -> list[Store]:
        """Every append, every item under a key that is no constant, every sum of lists."""
        found = []
        for line, call in self.outline.appends:
            assert isinstance(call.func, ast.Attribute)
            name, place = call.func.attr, call.func.value
            is_meter = name == "update" and (len(call.args) > 1 or isinstance(place, ast.Subscript))
            if call.args and name != "put" and not is_meter:
                if isinstance(place, ast.Call) and last_name(place.func) == "setdefault":
                    place = place.func.value if isinstance(place.func, ast.Attribute) else place
                found.append(Store(line, line.node, place, call.args[-1], "append"))
        for line in self.outline.assigns:
            node = line.node
            if isinstance(node, ast.Assign):
                found += [
                    Store(line, node, target.value, node.value, "item")
                    for target in node.targets
                    if isinstance(target, ast.Subscript) and _varies(target.slice)
                ]
                value = node.value
                is_sum = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add)
                if is_sum and len(node.targets) == 1 and isinstance(value, ast.BinOp):
                    key = key_of(node.targets[0])
                    is_list = isinstance(value.right, ast.List)
                    if key and key == key_of(value.left) and is_list:
                        found.append(Store(line, node, node.targets[0], value.right, "sum"))
            elif isinstance(node, ast.AugAssign) and isinstance(node.value, ast.List):
                found.append(Store(line, node, node.target, node.value, "sum"))
        return found

    def is_step(self, loop: Loop) -> bool:
        """This loop trains: something goes backward or an optimizer steps in it."""
        if loop not in self._steps:
            calls = [one for one in ast.walk(loop) if isinstance(one, ast.Call)]
            self._steps[loop] = any(
                _is_step(one) or last_name(one.func) in self._stepping for one in calls
            )
        return self._steps[loop]

    @cached_property
    def _stepping(self) -> set[str]:
        """Functions of the file that take a step themselves."""
        calls = self.outline.deep_calls.items()
        lines = [line for _, pairs in calls for line, call in pairs if _is_step(call)]
        return {line.scope.name for line in lines if line.scope.name}

    @cached_property
    def _emptied(self) -> dict[str, list[tuple[Line, str]]]:
        return _emptied_in(self.outline)

    def made_at(self, container: ast.expr, line: Line) -> list[Line]:
        """Where a new empty container is given this name; empty if the file does not show it."""
        key = key_of(container)
        scopes = self.outline.scopes if key.startswith(".") else list(line.scope.around())
        for scope in scopes:
            found = [one for one in scope.lines if _made_under(one.node, key) is not None]
            if found:
                return found
        if key.startswith("."):  # a list on the class
            owners = [one for one in self.outline.scopes if isinstance(one.node, ast.ClassDef)]
            return [
                one
                for scope in owners
                for one in scope.lines
                if _made_under(one.node, key[1:]) is not None
            ]
        return []

    def outlives(self, store: Store) -> bool:
        """The container is older than the round of the loop that fills it, and nothing empties it.

        An attribute or a global outlives every call; a local counts where a loop fills it."""
        key = key_of(store.container)
        made = self.made_at(store.container, store.line) if key else []
        if not made or any(_is_bounded(_made_by(one, key)) for one in made):
            return False
        if self.is_emptied(store, made):
            return False
        if key.startswith("."):
            is_first = store.line.scope.name in _FIRST
            return not is_first or isinstance(made[0].scope.node, ast.ClassDef)
        if made[0].scope is not store.line.scope:
            return isinstance(store.line.scope.node, Function)
        return len(store.line.loops) > len(made[-1].loops)

    def is_emptied(self, store: Store, made: list[Line]) -> bool:
        key = key_of(store.container)
        for line, how in self._emptied.get(key, ()):
            if line.node is store.line.node:
                continue
            if not key.startswith("."):
                family = {scope for one in made for scope in one.scope.below()}
                if line.scope not in family:
                    continue
            if how == "measure":
                if _guards(line, store.line):
                    return True
                continue
            if how != "assign":
                return True
            if line in made and (line.scope.name in _FIRST or line.scope is self.outline.module):
                continue
            if isinstance(line.scope.node, ast.ClassDef) or line.scope.name in _FIRST:
                continue
            if key.startswith("."):
                return True
            if line.scope is not store.line.scope:
                if line in made:
                    continue  # a closure's own, made once
                return True
            if line.loops and line.loops[0] in store.line.loops:
                return True
        return False


def scope_of_class(line: Line) -> Scope | None:
    scope: Scope | None = line.scope
    while scope is not None and not isinstance(scope.node, ast.ClassDef):
        scope = scope.parent
    return scope


def _is_step(call: ast.Call) -> bool:
    called = call.func
    if not isinstance(called, ast.Attribute):
        return False
    if called.attr == "backward" or dotted(called).endswith("autograd.grad"):
        return True
    owner = last_name(called.value).lower()
    return called.attr in _STEPS and ("opt" in owner or "scaler" in owner)


def _guards(line: Line, stored: Line) -> bool:
    """`if len(x) < 9: x.append(…)`, or `if len(x) > 9: return` before it."""
    test = line.node
    if not isinstance(test, ast.If | ast.While) or line.scope is not stored.scope:
        return False
    if test.lineno <= stored.node.lineno <= (test.end_lineno or 0):
        return True
    leaves = isinstance(test.body[-1], ast.Return | ast.Break | ast.Continue | ast.Raise)
    return leaves and line.loops == stored.loops


def _varies(node: ast.expr) -> bool:
    return not isinstance(node, ast.Constant | ast.Slice | ast.Tuple | ast.UnaryOp)


def _made_by(line: Line, key: str) -> ast.expr | None:
    return _made_under(line.node, key) or _made_under(line.node, key.removeprefix("."))


def _made_under(node: ast.stmt, key: str) -> ast.expr | None:
    """The new container of `key = []`, `key = {}`, `key = deque()` …"""
    for target, value in pairs_of(node):
        if key_of(target) == key and not isinstance(target, ast.Subscript):
            is_call = isinstance(value, ast.Call) and last_name(value.func) in _MAKERS
            if is_call or isinstance(value, ast.List | ast.Dict | ast.Set):
                return value
    return None


def _is_bounded(value: ast.expr | None) -> bool:
    if not isinstance(value, ast.Call):
        return False
    name = last_name(value.func)
    if name == "WeakValueDictionary":
        return True
    keywords = [one for one in ast.walk(value) if isinstance(one, ast.keyword)]
    has_bound = any(one.arg in ("maxlen", "maxsize") for one in keywords)
    return has_bound or (name == "deque" and len(value.args) > 1)


def _emptied_in(outline: Outline) -> dict[str, list[tuple[Line, str]]]:
    """By key: lines that empty, cut, replace or measure what it names."""
    found: dict[str, list[tuple[Line, str]]] = {}

    def note(key: str, line: Line, how: str) -> None:
        if key:
            found.setdefault(key, []).append((line, how))

    for scope in outline.scopes:
        for line in scope.lines:
            node = line.node
            for target in targets_of(node):
                if isinstance(target, ast.Subscript):
                    if isinstance(target.slice, ast.Slice):
                        note(key_of(target), line, "cut")
                elif not isinstance(node, ast.AugAssign):
                    note(key_of(target), line, "assign")
            if isinstance(node, ast.Delete):
                for target in node.targets:
                    note(key_of(target), line, "delete")
            for one in expressions(node):
                if isinstance(one, ast.Attribute) and one.attr in _EMPTIED:
                    # The name alone is enough: `task.add_done_callback(self.tasks.discard)`.
                    note(key_of(one.value), line, "take")
                elif isinstance(one, ast.Compare):
                    for part in (one.left, *one.comparators):
                        if (
                            isinstance(part, ast.Call)
                            and last_name(part.func) == "len"
                            and part.args
                        ):
                            note(key_of(part.args[0]), line, "measure")
    return found
