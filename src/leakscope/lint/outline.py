"""Source in, an outline out: every statement with its function, loops and gradient mode.

One pass over the statements. Expressions are only walked where a check asks for them, which few
files make it do: reading a file costs little more than parsing it.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While

_GRAD_OFF = frozenset({"no_grad", "inference_mode"})
_DEEPEST = 200
"""Statements nested deeper than this are not read; no person writes them."""


@dataclass(slots=True, eq=False)
class Scope:
    """A module, a class or a function."""

    node: ast.Module | ast.ClassDef | Function
    name: str
    parent: Scope | None
    is_grad_off: bool = False
    lines: list[Line] = field(default_factory=list)
    children: list[Scope] = field(default_factory=list)

    @property
    def owner(self) -> Scope | None:
        """The class this is a method of."""
        above = self.parent
        is_method = above is not None and isinstance(above.node, ast.ClassDef)
        return above if is_method and isinstance(self.node, Function) else None

    @property
    def parameters(self) -> list[ast.arg]:
        if not isinstance(self.node, Function):
            return []
        arguments = self.node.args
        return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]

    def around(self) -> Iterator[Scope]:
        """This scope and those it can see names of, the nearest first."""
        scope: Scope | None = self
        while scope is not None:
            if scope is self or not isinstance(scope.node, ast.ClassDef):
                yield scope
            scope = scope.parent

    def below(self) -> Iterator[Scope]:
        """This scope and all inside it."""
        yield self
        for child in self.children:
            yield from child.below()


@dataclass(slots=True, eq=False)
class Line:
    """One statement, or the head of one that has a body."""

    node: ast.stmt
    scope: Scope
    loops: tuple[Loop, ...]
    """Of the same function, the outermost first."""
    is_grad_off: bool
    handler: ast.ExceptHandler | None
    order: int


class Outline:
    """A file as the checks see it."""

    def __init__(self, text: str, tree: ast.Module) -> None:
        self.text = text
        self.module = Scope(tree, "", None)
        self.scopes: list[Scope] = [self.module]
        self.classes: dict[str, Scope] = {}
        self.functions: dict[str, list[Scope]] = {}
        self.appends: list[tuple[Line, ast.Call]] = []
        """`x.append(…)` and its like, as statements."""
        self.calls: list[tuple[Line, ast.Call]] = []
        """Other calls that are statements."""
        self.assigns: list[Line] = []
        self._order = 0
        self._read(tree.body, self.module, (), False, None, 0)

    @cached_property
    def deep_calls(self) -> dict[str, list[tuple[Line, ast.Call]]]:
        """Every call, by the last part of its name."""
        found: dict[str, list[tuple[Line, ast.Call]]] = {}
        for scope in self.scopes:
            for line in scope.lines:
                for node in expressions(line.node):
                    if type(node) is ast.Call:
                        found.setdefault(last_name(node.func), []).append((line, node))
        return found

    @cached_property
    def has_torch(self) -> bool:
        return "torch" in self.text

    def calls_of(self, name: str) -> list[tuple[Line, ast.Call]]:
        # Most files do not have the word at all, and need not be walked.
        return self.deep_calls.get(name, []) if f"{name}(" in self.text else []

    def _read(
        self,
        body: list[ast.stmt],
        scope: Scope,
        loops: tuple[Loop, ...],
        is_grad_off: bool,
        handler: ast.ExceptHandler | None,
        depth: int,
    ) -> None:
        if depth > _DEEPEST:
            return
        depth += 1
        for node in body:
            kind = type(node)
            self._order += 1
            line = Line(node, scope, loops, is_grad_off, handler, self._order)
            if kind is ast.Expr:
                call = node.value  # type: ignore[attr-defined]
                if type(call) is ast.Constant:
                    continue
                if type(call) is ast.Call:
                    name = getattr(call.func, "attr", "")
                    (self.appends if name in GROWING else self.calls).append((line, call))
                    if name == "set_grad_enabled":
                        is_grad_off = _is_false(call)
            elif kind is ast.Assign or kind is ast.AugAssign or kind is ast.AnnAssign:
                self.assigns.append(line)
            elif kind in _WITH_BODY:
                scope.lines.append(line)
                self._read_inside(line, depth)
                continue
            scope.lines.append(line)

    def _read_inside(self, line: Line, depth: int) -> None:
        node, scope, loops = line.node, line.scope, line.loops
        off, handler = line.is_grad_off, line.handler
        if isinstance(node, Function | ast.ClassDef):
            self._enter(node, line, depth)
        elif isinstance(node, Loop):
            self._read(node.body, scope, (*loops, node), off, handler, depth)
            self._read(node.orelse, scope, loops, off, handler, depth)
        elif isinstance(node, ast.With | ast.AsyncWith):
            off = _grad_mode([item.context_expr for item in node.items], off)
            self._read(node.body, scope, loops, off, handler, depth)
        elif isinstance(node, ast.Try | ast.TryStar):
            for body in (node.body, node.orelse, node.finalbody):
                self._read(body, scope, loops, off, handler, depth)
            for one in node.handlers:
                self._read(one.body, scope, loops, off, one, depth)
        elif isinstance(node, ast.If):
            self._read(node.body, scope, loops, off, handler, depth)
            self._read(node.orelse, scope, loops, off, handler, depth)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                self._read(case.body, scope, loops, off, handler, depth)

    def _enter(self, node: Function | ast.ClassDef, line: Line, depth: int) -> None:
        off = _grad_mode(node.decorator_list, line.is_grad_off)
        inner = Scope(node, node.name, line.scope, off)
        line.scope.children.append(inner)
        self.scopes.append(inner)
        if isinstance(node, ast.ClassDef):
            self.classes.setdefault(node.name, inner)
        else:
            self.functions.setdefault(node.name, []).append(inner)
        self._read(node.body, inner, (), off, None, depth)


GROWING = frozenset({"append", "appendleft", "extend", "add", "insert", "update", "put"})
_WITH_BODY = frozenset(
    {
        ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.AsyncFor, ast.While,
        ast.If, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match,
    }
)  # fmt: skip


def parse(text: str) -> Outline:
    """The outline of a file; raises what `ast.parse` raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the text's escapes: not what is asked here
        return Outline(text, ast.parse(text))


def expressions(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a statement that belong to itself, not to the statements inside it."""
    todo = [node]
    take, put = todo.pop, todo.append
    while todo:
        one = take()
        yield one
        if one.__class__ in _LEAVES:
            continue
        # The dict of a node also has its lines and columns, which are quickly passed over.
        for value in one.__dict__.values():
            if value.__class__ is list:
                for child in value:
                    if isinstance(child, ast.AST) and not isinstance(child, _BODIES):
                        put(child)
            elif isinstance(value, _INSIDE):
                put(value)


_LEAVES = frozenset({ast.Name, ast.Constant, ast.Pass, ast.Import, ast.alias})
_INSIDE = (ast.expr, ast.arguments, ast.keyword, ast.comprehension, ast.arg)
_BODIES = (ast.stmt, ast.ExceptHandler, ast.match_case)


def last_name(node: ast.AST) -> str:
    """`c` of `a.b.c`; empty where there is no name at the end."""
    if type(node) is ast.Attribute:
        return node.attr
    return node.id if type(node) is ast.Name else ""


def dotted(node: ast.AST) -> str:
    """`a.b.c`; empty where it is more than names and dots."""
    parts = []
    while type(node) is ast.Attribute:
        parts.append(node.attr)
        node = node.value
    if type(node) is not ast.Name:
        return ""
    return ".".join((node.id, *reversed(parts)))


def key_of(node: ast.AST) -> str:
    """What a container is known by: a plain name, or `.name` for an attribute of anything."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if type(one) is ast.Name}


def targets_of(node: ast.stmt) -> list[ast.expr]:
    """What an assignment assigns to, tuples taken apart."""
    if isinstance(node, ast.Assign):
        todo = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor):
        todo = [node.target]
    else:
        return []
    found = []
    while todo:
        one = todo.pop()
        if isinstance(one, ast.Tuple | ast.List):
            todo.extend(one.elts)
        else:
            found.append(one.value if isinstance(one, ast.Starred) else one)
    return found


def pairs_of(node: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Target and value of an assignment; of `a, b = 1, 2` both pairs."""
    value = getattr(node, "value", None)
    if not isinstance(node, ast.Assign | ast.AnnAssign) or value is None:
        return
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if (
            isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
        ):
            yield from zip(target.elts, value.elts, strict=True)
        else:
            yield target, value


def _grad_mode(guards: list[ast.expr], before: bool) -> bool:
    for guard in guards:
        call = guard if isinstance(guard, ast.Call) else None
        name = last_name(call.func if call else guard)
        if name in _GRAD_OFF:
            before = True
        elif name == "enable_grad":
            before = False
        elif name == "set_grad_enabled" and call is not None:
            # A mode that is computed may be off: that is not for us to call a leak.
            before = before or not (
                call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value is True
            )
    return before


def _is_false(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and not call.args[0].value
