"""LS105 in the source: `backward(create_graph=True)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.file import File
from leakscope.lint.hit import POSSIBLE, Check, Spot


def _find(file: File) -> Iterator[Spot]:
    for _, call in file.outline.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
            for keyword in call.keywords:
                is_on = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
                if keyword.arg == "create_graph" and is_on:
                    says = (
                        "each gradient may keep a graph that leads back to its own parameter: a "
                        "cycle in C++ that the collector does not see"
                    )
                    yield Spot(call, says, POSSIBLE)


CHECK = Check(
    "LS105",
    "create-graph-cycle",
    "parameters are held by their own gradients",
    "use torch.autograd.grad(…, create_graph=True), or set the gradients to None afterwards",
    _find,
)
