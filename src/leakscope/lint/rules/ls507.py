"""LS507 in the source: log handlers that pile up, or that keep every record."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.containers import scope_of_class
from leakscope.lint.file import File
from leakscope.lint.hit import LIKELY, POSSIBLE, Check, Spot
from leakscope.lint.outline import Line, Scope, expressions, last_name, names_in
from leakscope.lint.repeated import is_repeated


def _find(file: File) -> Iterator[Spot]:
    if "Handler" not in file.outline.text:
        return
    for line, call in file.outline.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "addHandler":
            how = is_repeated(call.func.value, line, file)
            if how and not _is_guarded(line):
                says = f"`{ast.unparse(call.func)}` seems to run {how}, and no handler is removed"
                yield Spot(call, says, LIKELY if "loop" in how else POSSIBLE)
    for store in file.containers.stores:
        owner, scope = scope_of_class(store.line), store.line.scope
        if owner is None or scope.name != "emit" or not _is_handler(owner):
            continue
        given = {one.arg for one in scope.parameters} - {"self"}
        is_record = isinstance(store.value, ast.Name) and store.value.id in given
        if is_record and file.containers.outlives(store):
            name = ast.unparse(store.container)
            says = f"`{name}` seems to keep every log record with its arguments"
            yield Spot(store.node, says, LIKELY)
    for _, call in file.outline.calls_of("MemoryHandler"):
        has_target = len(call.args) > 2 or any(one.arg == "target" for one in call.keywords)
        if not has_target and not file.outline.calls_of("setTarget"):
            says = "a MemoryHandler without a target never empties its buffer"
            yield Spot(call, says, LIKELY)


def _is_guarded(line: Line) -> bool:
    """The function asks for handlers first, or takes them off."""
    for one in line.scope.lines:
        for node in expressions(one.node):
            if last_name(node) in ("handlers", "hasHandlers", "removeHandler"):
                return True
            if isinstance(node, ast.Name) and node.id in ("_configured", "_initialized"):
                return True
    return bool({"global"} & {type(one.node).__name__.lower() for one in line.scope.lines})


def _is_handler(owner: Scope) -> bool:
    node = owner.node
    bases = node.bases if isinstance(node, ast.ClassDef) else []
    return any(last_name(one).endswith("Handler") for one in bases if names_in(one))


CHECK = Check(
    "LS507",
    "logging-handlers",
    "log handlers are added in every step, or keep every record",
    "add the handler once, or remove it; keep texts instead of records, in a bounded deque",
    _find,
)
