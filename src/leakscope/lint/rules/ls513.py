"""LS513 in the source: a finalizer that holds what it waits for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.containers import scope_of_class
from leakscope.lint.file import File
from leakscope.lint.hit import LIKELY, Check, Spot
from leakscope.lint.outline import Line, dotted, names_in


def _find(file: File) -> Iterator[Spot]:
    if "finalize" not in file.outline.text or "weakref" not in file.outline.text:
        return
    for line, call in file.outline.calls_of("finalize"):
        if dotted(call.func) not in ("weakref.finalize", "finalize") or len(call.args) < 2:
            continue
        owner = call.args[0]
        if isinstance(owner, ast.Name) and any(
            _holds(one, owner.id, line) for one in call.args[1:]
        ):
            says = f"the callback of this finalizer holds `{owner.id}`, which therefore never dies"
            yield Spot(call, says, LIKELY)


def _holds(given: ast.expr, owner: str, line: Line) -> bool:
    """The owner itself, a function around it, or a method bound to it; not what a call made."""
    if isinstance(given, ast.Name):
        return given.id == owner
    if isinstance(given, ast.Lambda):
        return owner in names_in(given.body)
    if not isinstance(given, ast.Attribute) or dotted(given.value) != owner:
        return False
    holder = scope_of_class(line)
    methods = [one for one in (holder.children if holder else []) if one.name == given.attr]
    return any(not getattr(one.node, "decorator_list", []) for one in methods)


CHECK = Check(
    "LS513",
    "finalizer-or-weak-registry",
    "a finalizer or a weak table holds what it should let go",
    "give finalize() a static function and the few values that it needs",
    _find,
)
