"""LS103 in the source: a metric is updated in every step and never reset."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.file import File
from leakscope.lint.hit import POSSIBLE, Check, Spot
from leakscope.lint.outline import key_of, last_name, targets_of
from leakscope.lint.repeated import goes_on


def _find(file: File) -> Iterator[Spot]:
    if "torchmetrics" not in file.outline.text or ".reset(" in file.outline.text:
        return
    imported = _imported(file)
    metrics = {
        key_of(target)
        for line in file.outline.assigns
        for target in targets_of(line.node)
        if _is_metric(getattr(line.node, "value", None), imported)
    }
    for line, call in file.outline.appends:
        called = call.func
        if not isinstance(called, ast.Attribute) or called.attr != "update":
            continue
        if key_of(called.value) in metrics and line.loops and goes_on(line.loops[-1], file):
            says = f"`{ast.unparse(called.value)}` may keep every update: it is never reset"
            yield Spot(call, says, POSSIBLE)


def _imported(file: File) -> set[str]:
    return {
        one.asname or one.name
        for line in file.outline.module.lines
        if isinstance(line.node, ast.ImportFrom)
        and (line.node.module or "").partition(".")[0] == "torchmetrics"
        for one in line.node.names
    }


def _is_metric(value: ast.expr | None, imported: set[str]) -> bool:
    if not isinstance(value, ast.Call) or not last_name(value.func)[:1].isupper():
        return False
    text = ast.unparse(value.func)
    return text in imported or text.startswith("torchmetrics.")


CHECK = Check(
    "LS103",
    "metric-never-reset",
    "a metric keeps the values of every step because it is never reset",
    "call reset() after compute(), at the end of each epoch",
    _find,
)
