"""LS205 in the source: `itertools.cycle` or `tee` over a loader or an endless generator."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.file import File
from leakscope.lint.hit import LIKELY, POSSIBLE, Check, Spot
from leakscope.lint.names import LOADER_NAME
from leakscope.lint.outline import Line, Scope, last_name


def _find(file: File) -> Iterator[Spot]:
    if "itertools" not in file.outline.text:
        return
    for name in ("cycle", "tee"):
        for line, call in file.outline.calls_of(name):
            if not call.args or not _is_itertools(call, name, file):
                continue
            certainty = _source(call.args[0], line, name, file)
            if certainty:
                given = ast.unparse(call.args[0])
                says = f"`{name}` remembers every item of `{given}`, which may be a whole epoch"
                yield Spot(call, says, certainty)


def _is_itertools(call: ast.Call, name: str, file: File) -> bool:
    if isinstance(call.func, ast.Attribute):
        return last_name(call.func.value) in ("itertools", "it")
    return any(
        isinstance(line.node, ast.ImportFrom)
        and line.node.module == "itertools"
        and any((one.asname or one.name) == name for one in line.node.names)
        for scope in file.outline.scopes
        for line in scope.lines
    )


def _source(node: ast.expr, line: Line, name: str, file: File) -> str:
    """How sure it is that this hands out batches; empty if nothing says so."""
    if isinstance(node, ast.Call) and last_name(node.func) == "DataLoader":
        return LIKELY
    if isinstance(node, ast.Call) and name == "tee":
        made = file.outline.functions.get(last_name(node.func), [])
        return POSSIBLE if len(made) == 1 and _is_generator(made[0]) else ""
    for value, _ in file.kinds.values(node.id, line) if isinstance(node, ast.Name) else ():
        if isinstance(value, ast.Call) and last_name(value.func) == "DataLoader":
            return LIKELY
    return LIKELY if LOADER_NAME.search(last_name(node)) else ""


def _is_generator(scope: Scope) -> bool:
    return any(
        isinstance(line.node, ast.Expr) and isinstance(line.node.value, ast.Yield)
        for line in scope.lines
    )


CHECK = Check(
    "LS205",
    "iterator-remembers-everything",
    "an iterator remembers every item that it handed out",
    "iterate anew instead: a generator with `while True: yield from loader`",
    _find,
)
