"""LS108 in the source: a forward pass carries a buffer on, with the graph of all passes before."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.file import File
from leakscope.lint.hit import POSSIBLE, Check, Spot
from leakscope.lint.kind import Kind
from leakscope.lint.outline import key_of
from leakscope.lint.rules.ls102 import added_to


def _find(file: File) -> Iterator[Spot]:
    if not file.outline.has_torch:
        return
    for line in file.outline.assigns:
        if line.scope.name != "forward" or line.is_grad_off:
            continue
        added = added_to(line.node)
        if added is None or not key_of(added[0]).startswith("."):
            continue
        name = key_of(added[0])[1:]
        is_buffer = any(
            call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value == name
            for _, call in file.outline.calls_of("register_buffer")
        )
        if is_buffer and file.kinds.of(added[1], line).kind is Kind.GRAPH:
            says = f"the buffer `{name}` seems to get `{ast.unparse(added[1])}` with its graph"
            yield Spot(line.node, says, POSSIBLE)


CHECK = Check(
    "LS108",
    "buffer-carries-graph",
    "a buffer is computed from itself with the graph of every step before",
    "update it under torch.no_grad(), or from `.detach()`ed values",
    _find,
)
