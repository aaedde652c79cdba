"""LS513 in the source: a finalizer that holds what it waits for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.file import File
from leakscope.lint.hit import LIKELY, Check, Spot
from leakscope.lint.outline import dotted, names_in


def _find(file: File) -> Iterator[Spot]:
    if "finalize" not in file.outline.text or "weakref" not in file.outline.text:
        return
    for _, call in file.outline.calls_of("finalize"):
        if dotted(call.func) not in ("weakref.finalize", "finalize") or len(call.args) < 2:
            continue
        owner = call.args[0]
        if isinstance(owner, ast.Name) and any(owner.id in names_in(one) for one in call.args[1:]):
            says = f"the callback of this finalizer holds `{owner.id}`, which therefore never dies"
            yield Spot(call, says, LIKELY)


CHECK = Check(
    "LS513",
    "finalizer-or-weak-registry",
    "a finalizer or a weak table holds what it should let go",
    "give finalize() a static function and the few values that it needs",
    _find,
)
