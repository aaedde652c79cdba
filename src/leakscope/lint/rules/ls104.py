"""LS104 in the source: a state goes into a model and comes out, with the graph of all steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.file import File
from leakscope.lint.hit import LIKELY, POSSIBLE, Check, Spot
from leakscope.lint.kind import UNKNOWN, Kind
from leakscope.lint.outline import Line, key_of, names_in, targets_of


def _find(file: File) -> Iterator[Spot]:
    if not file.outline.has_torch:
        return
    for line in file.outline.assigns:
        call = getattr(line.node, "value", None)
        if not isinstance(call, ast.Call) or not isinstance(line.node, ast.Assign):
            continue
        if not line.loops or line.is_grad_off or len(line.scope.lines) < 2:
            continue
        given = {key_of(one) for one in (*call.args, *(k.value for k in call.keywords))} - {""}
        carried = [one for one in targets_of(line.node) if key_of(one) in given]
        known = file.kinds.is_module(call.func, line) if carried else UNKNOWN
        if known.kind is not Kind.GRAPH or file.kinds.is_off(line.scope):
            continue
        for target in carried:
            if isinstance(target, ast.Name) and _is_carried(target.id, line, file):
                says = f"`{target.id}` seems to carry the graph of all rounds before into the next"
                yield Spot(line.node, says, LIKELY if known.is_sure else POSSIBLE)


def _is_carried(name: str, line: Line, file: File) -> bool:
    others = [one for one in file.kinds.assigned(line.scope).get(name, ()) if one is not line]
    if not others or any(len(one.loops) >= len(line.loops) for one in others):
        return False  # made, detached or replaced in the same round
    if _is_freed(name, line):
        return False
    made = max(len(one.loops) for one in others)
    if any(file.containers.is_step(loop) for loop in line.loops[made:]):
        return True
    # Without a step in the loop it is a sequence that goes backward later, unless nothing leaves.
    return not _leaves(line) and not file.kinds.backward_names(line.scope)


def _is_freed(name: str, line: Line) -> bool:
    for one in line.scope.lines:
        for node in ast.walk(one.node) if isinstance(one.node, ast.Expr) else ():
            is_freed = isinstance(node, ast.Attribute) and node.attr == "detach_"
            if is_freed and name in names_in(node):
                return True
        if isinstance(one.node, ast.For) and name in names_in(one.node.iter):
            return True  # its parts are taken one by one, to be detached or copied
    return False


def _leaves(line: Line) -> bool:
    """Something of the function is handed to its caller, or kept on an object."""
    for one in line.scope.lines:
        node = one.node
        if isinstance(node, ast.Return) and node.value is not None:
            return True
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield):
            return True
        if any(isinstance(target, ast.Attribute) for target in targets_of(node)):
            return True
    return False


CHECK = Check(
    "LS104",
    "state-carried-undetached",
    "a state is carried from step to step with the graph of all steps before",
    "detach it before the next round: `state = state.detach()`",
    _find,
)
