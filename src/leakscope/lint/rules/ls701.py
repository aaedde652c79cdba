"""LS701 in the source: a model is run in an evaluation loop while gradients are on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.file import File
from leakscope.lint.hit import LIKELY, POSSIBLE, Check, Spot
from leakscope.lint.kind import Kind
from leakscope.lint.outline import GROWING, Line, Scope, expressions, last_name
from leakscope.lint.repeated import EVALUATES, evaluates


def _find(file: File) -> Iterator[Spot]:
    if not file.outline.has_torch or (".eval" not in file.outline.text and not _named(file)):
        return
    for scope in file.outline.scopes:
        for line in scope.lines:
            spot = _spot(line, file) if line.loops and not line.is_grad_off else None
            if spot is not None:
                yield spot
                break


def _spot(line: Line, file: File) -> Spot | None:
    is_kept = _is_kept(line)
    if not evaluates(line) or not (is_kept or EVALUATES.match(line.scope.name)):
        return None
    for call in expressions(line.node):
        if isinstance(call, ast.Call) and (sure := _runs_model(call, line, file)) is not None:
            says = f"`{ast.unparse(call.func)}` seems to run with gradients on in an evaluation"
            return Spot(call, says, LIKELY if sure and is_kept else POSSIBLE)
    return None


def _is_kept(line: Line) -> bool:
    """What comes out goes straight into a container: without that, it is only a larger peak."""
    call = getattr(line.node, "value", None)
    return isinstance(call, ast.Call) and last_name(call.func) in GROWING


def _named(file: File) -> bool:
    return any(EVALUATES.match(name) for name in file.outline.functions)


def _runs_model(call: ast.Call, line: Line, file: File) -> bool | None:
    scope = line.scope
    if scope.name == "forward" or file.kinds.is_off(scope):
        return None
    if any(file.containers.is_step(loop) for loop in line.loops) or _needs_gradients(scope):
        return None
    known = file.kinds.is_module(call.func, line)
    return known.is_sure if known.kind is Kind.GRAPH else None


def _needs_gradients(scope: Scope) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("backward", "grad", "requires_grad_")
        for node in ast.walk(scope.node)
    )


CHECK = Check(
    "LS701",
    "missing-no-grad",
    "a model that only predicts builds a graph in every call",
    "wrap the loop in `with torch.inference_mode():` (or torch.no_grad())",
    _find,
)
