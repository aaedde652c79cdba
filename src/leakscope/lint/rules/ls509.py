"""LS509 in the source: a slice of an array goes into a container that lasts."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.containers import Store
from leakscope.lint.file import File
from leakscope.lint.hit import LIKELY, POSSIBLE, Check, Spot
from leakscope.lint.kind import Kind
from leakscope.lint.outline import Line, names_in


def _find(file: File) -> Iterator[Spot]:
    for store in file.containers.stores:
        for view, line in _views(store.value, store.line, file):
            known = file.kinds.of(view.value, line)
            is_array = known.kind is Kind.ARRAY or _is_used_as_array(view, line, file)
            if is_array and _lasts(store, file):
                what, name = ast.unparse(view), ast.unparse(store.container)
                says = f"`{name}` keeps `{what}`, which may be a view that keeps the whole array"
                is_sure = known.kind is Kind.ARRAY and known.is_sure
                yield Spot(store.node, says, LIKELY if is_sure else POSSIBLE)
                break


def _lasts(store: Store, file: File) -> bool:
    loops = store.line.loops
    made = file.containers.made_at(store.container, store.line)
    # A list of an outer function is one call old: its pieces are put together at the end.
    is_local = isinstance(store.container, ast.Name) and any(one.scope.name for one in made)
    if is_local and not any(file.containers.is_step(loop) for loop in loops):
        return False
    return file.containers.outlives(store)


def _views(node: ast.expr, line: Line, file: File) -> Iterator[tuple[ast.Subscript, Line]]:
    """Slices and rows that are kept as they are."""
    if isinstance(node, ast.Subscript):
        if _cuts(node.slice):
            yield node, line
    elif isinstance(node, ast.Tuple | ast.List):
        for one in node.elts:
            yield from _views(one, line, file)
    elif isinstance(node, ast.Dict):
        for one in node.values:
            yield from _views(one, line, file)
    elif isinstance(node, ast.Name):
        for value, where in file.kinds.values(node.id, line):
            if isinstance(value, ast.Subscript) and not isinstance(where.node, ast.For):
                yield from _views(value, where, file)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        # A record of the user's own that keeps what it is given.
        owner = file.outline.classes.get(node.func.id)
        if owner is not None:
            for one in node.args:
                yield from _views(one, line, file)


def _cuts(index: ast.expr) -> bool:
    """A slice, or a number: a mask or a list of places makes a copy."""
    if isinstance(index, ast.Tuple):
        return any(isinstance(one, ast.Slice) for one in index.elts)
    if isinstance(index, ast.Constant):
        return isinstance(index.value, int)
    return isinstance(index, ast.Slice)


_OF_ARRAYS = frozenset({"mean", "std", "shape", "astype", "reshape", "clone", "ndim", "dtype"})


def _is_used_as_array(view: ast.Subscript, line: Line, file: File) -> bool:
    """In the same function something is asked of it that only arrays have."""
    names = names_in(view.value)
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in _OF_ARRAYS
        and bool(names & names_in(node.value))
        for one in line.scope.lines
        for node in ast.walk(one.node)
    )


CHECK = Check(
    "LS509",
    "view-keeps-base",
    "small views are kept, and each keeps the whole array it was cut from",
    "keep a copy: `.clone()` of a tensor, `.copy()` of an array",
    _find,
)
