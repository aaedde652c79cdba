"""LS502 in the source: a cache around a method, or around a function that makes tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.file import File
from leakscope.lint.hit import LIKELY, POSSIBLE, Check, Spot
from leakscope.lint.kind import Kind
from leakscope.lint.outline import Function, Scope, dotted, last_name

_CACHES = ("cache", "lru_cache")
_DEFAULT = 128
"""Of lru_cache."""
_NO_INSTANCE = frozenset({"staticmethod", "classmethod", "property"})


def _find(file: File) -> Iterator[Spot]:
    if "cache" not in file.outline.text:
        return
    for scopes in file.outline.functions.values():
        for scope in scopes:
            assert isinstance(scope.node, Function)
            marks = [last_name(_called(one)) for one in scope.node.decorator_list]
            for decorator in scope.node.decorator_list:
                size = _size(decorator)
                if size is None:
                    continue
                if scope.owner is not None and not _NO_INSTANCE & set(marks):
                    yield from _on_method(decorator, scope, size)
                elif size == "unbounded" and scope.parameters and _makes_tensors(scope, file):
                    says = (
                        f"the cache of `{scope.name}` has no limit and keeps a tensor for every "
                        "new argument"
                    )
                    yield Spot(decorator, says, POSSIBLE)


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _size(decorator: ast.expr) -> str | None:
    """unbounded, bounded; None where it is no cache."""
    name = dotted(_called(decorator))
    if name.removeprefix("functools.") not in _CACHES:
        return None
    if name.endswith("lru_cache"):
        call = decorator if isinstance(decorator, ast.Call) else None
        given = (
            [*call.args, *(k.value for k in call.keywords if k.arg == "maxsize")] if call else []
        )
        size = given[0].value if given and isinstance(given[0], ast.Constant) else _DEFAULT
        if size is None:
            return "unbounded"
        # A small size that somebody chose is a bound that somebody thought of.
        return None if given and isinstance(size, int) and size < _DEFAULT else "bounded"
    return "unbounded"


def _on_method(decorator: ast.expr, scope: Scope, size: str) -> Iterator[Spot]:
    if not scope.parameters or scope.parameters[0].arg != "self":
        return
    says = f"the cache of the method `{scope.name}` keeps `self` and every argument"
    if size == "bounded":
        says += ", up to its size"
    yield Spot(decorator, says, LIKELY if size == "unbounded" else POSSIBLE)


def _makes_tensors(scope: Scope, file: File) -> bool:
    return any(
        isinstance(line.node, ast.Return)
        and file.kinds.of(line.node.value, line).kind in (Kind.ARRAY, Kind.GRAPH)
        for line in scope.lines
    )


CHECK = Check(
    "LS502",
    "lru-cache-keeps-arguments",
    "a cache around a function keeps every argument and every result",
    "bound it with maxsize, or cache on the instance or on plain values",
    _find,
)
