"""LS508 in the source: a queue without a limit that is fed and never read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.file import File
from leakscope.lint.hit import POSSIBLE, Check, Spot
from leakscope.lint.outline import expressions, key_of, last_name, targets_of

_QUEUES = frozenset({"Queue", "SimpleQueue", "LifoQueue"})
_READS = frozenset({"get", "get_nowait", "recv", "empty", "qsize"})


def _find(file: File) -> Iterator[Spot]:
    if "Queue(" not in file.outline.text:
        return
    queues: set[str] = set()
    others: set[str] = set()
    for line in file.outline.assigns:
        is_queue = _is_open_queue(getattr(line.node, "value", None))
        (queues if is_queue else others).update(map(key_of, targets_of(line.node)))
    queues -= others  # one that may come from elsewhere may be read there
    if not queues:
        return
    read = _read_or_handed_on(file)
    for line, call in file.outline.appends:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "put":
            key = key_of(call.func.value)
            if key in queues and key not in read:
                name = ast.unparse(call.func.value)
                yield Spot(line.node, f"nothing in this file takes out of `{name}`", POSSIBLE)


def _is_open_queue(value: ast.expr | None) -> bool:
    if not isinstance(value, ast.Call) or last_name(value.func) not in _QUEUES:
        return False
    return not value.args and not any(one.arg == "maxsize" for one in value.keywords)


def _read_or_handed_on(file: File) -> set[str]:
    found: set[str] = set()
    for scope in file.outline.scopes:
        for line in scope.lines:
            for node in expressions(line.node):
                if isinstance(node, ast.Attribute) and node.attr in _READS:
                    found.add(key_of(node.value))
                elif isinstance(node, ast.Call):
                    given = [*node.args, *(one.value for one in node.keywords)]
                    parts = [part for one in given for part in ast.walk(one)]
                    found |= {key_of(one) for one in parts if isinstance(one, ast.expr)}
                elif isinstance(node, ast.Return | ast.Assign) and node.value is not None:
                    found.add(key_of(node.value))
    return found


CHECK = Check(
    "LS508",
    "backlog",
    "a queue without a limit is fed faster than it is read",
    "give it a maxsize, or read it",
    _find,
)
