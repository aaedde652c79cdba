"""LS505 in the source: short-lived objects that keep a bound method of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.containers import scope_of_class
from leakscope.lint.file import File
from leakscope.lint.hit import LIKELY, POSSIBLE, Check, Spot
from leakscope.lint.outline import Line, Scope, names_in


def _find(file: File) -> Iterator[Spot]:
    for line in file.outline.assigns:
        node, owner = line.node, scope_of_class(line)
        if not isinstance(node, ast.Assign) or owner is None or line.scope.owner is not owner:
            continue
        is_own = any(
            isinstance(one, ast.Attribute)
            and isinstance(one.value, ast.Name)
            and one.value.id == "self"
            for one in node.targets
        )
        if not is_own or not _leads_back(node.value, owner):
            continue
        certainty = _how_often(owner, file)
        if certainty:
            says = f"each `{owner.name}` keeps a method of its own: a cycle for the collector"
            yield Spot(node, says, certainty)


def _leads_back(value: ast.expr, owner: Scope) -> bool:
    if isinstance(value, ast.List | ast.Tuple):
        return any(_leads_back(one, owner) for one in value.elts)
    if isinstance(value, ast.Lambda):
        return "self" in names_in(value.body)
    methods = {one.name for one in owner.children if not _is_property(one)}
    return (
        isinstance(value, ast.Attribute)
        and isinstance(value.value, ast.Name)
        and value.value.id == "self"
        and value.attr in methods
    )


def _is_property(scope: Scope) -> bool:
    return bool(getattr(scope.node, "decorator_list", []))


def _how_often(owner: Scope, file: File) -> str:
    """Objects made in a loop or in a function that a loop calls; with the collector off, surely."""
    is_off = any(
        isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "gc"
        for name in ("disable", "freeze")
        for _, call in file.outline.calls_of(name)
    )
    made = file.outline.calls_of(owner.name)
    if not any(_is_repeated(line, file) for line, _ in made):
        return ""
    return LIKELY if is_off else POSSIBLE


def _is_repeated(line: Line, file: File) -> bool:
    if any(file.containers.is_step(loop) for loop in line.loops):
        return True
    calls = file.outline.calls_of(line.scope.name) if line.scope.name else []
    return any(
        any(file.containers.is_step(loop) for loop in where.loops)
        for where, _ in calls
        if where.scope is not line.scope
    )


CHECK = Check(
    "LS505",
    "reference-cycle",
    "objects in cycles wait for the garbage collector",
    "keep a weak reference, or look the method up when it is called",
    _find,
)
