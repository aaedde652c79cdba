"""What a function is run for, and whether a call in it meets the same object again and again."""

from __future__ import annotations

import ast
import re

from leakscope.lint.file import File
from leakscope.lint.names import LOADER_NAME
from leakscope.lint.outline import Line, Loop, Scope, last_name, names_in, targets_of

_EVERY_STEP = frozenset(
    {"forward", "__call__", "training_step", "validation_step", "test_step", "predict_step", "step",
     "train_step", "on_batch_end", "on_train_batch_end", "on_step_end"}
)  # fmt: skip

EVALUATES = re.compile(
    r"^_?(eval|evaluate|evaluation|validate|validation|predict|infer|inference|test)"
    r"(_(model|epoch|loop|one_epoch|all|set))?$"
)


def evaluates(line: Line) -> bool:
    """The function is called so, or a model was set to evaluation before this line:
    `model.eval()`, `model = Net().eval()`."""
    if EVALUATES.match(line.scope.name):
        return True
    words = [
        call.func.attr
        for one in line.scope.lines
        if one.order < line.order
        and isinstance(call := getattr(one.node, "value", None), ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("eval", "train")
    ]
    return bool(words) and words[-1] == "eval"


def goes_on(loop: Loop, file: File) -> bool:
    """A loop of steps, epochs or batches: not one over layers, names or settings."""
    if isinstance(loop, ast.While) or file.containers.is_step(loop):
        return True
    return any(
        LOADER_NAME.search(name) or name in ("range", "count", "epochs", "steps")
        for one in ast.walk(loop.iter)
        if (name := last_name(one))
    )


def is_repeated(target: ast.expr, line: Line, file: File) -> str:
    """How: `in every round of a loop`, `in every call of forward`; empty if nothing says so."""
    if line.loops:
        loop = line.loops[-1]
        return "in every round of a loop" if goes_on(loop, file) and _stays(target, loop) else ""
    scope = line.scope
    if not _comes_from_outside(target, line, file):
        return ""
    root = _root(target, line, file)
    if scope.name in _EVERY_STEP:
        # What a step is given is new with each step; what hangs on `self` is not.
        is_given = root != "self" and root in {one.arg for one in scope.parameters}
        return "" if is_given else f"in every call of {scope.name}"
    return _called_in_loop(root, scope, file)


def _stays(target: ast.expr, loop: Loop) -> bool:
    """The object is the same in every round: nothing in the loop gives its name anew."""
    made: set[str] = set()
    for node in ast.walk(loop):
        if isinstance(node, ast.stmt):
            made |= {one.id for one in targets_of(node) if isinstance(one, ast.Name)}
        elif isinstance(node, ast.comprehension):
            made |= names_in(node.target)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            made |= names_in(node.optional_vars)
    return bool(names_in(target)) and not names_in(target) & made


def _comes_from_outside(target: ast.expr, line: Line, file: File) -> bool:
    """The object is older than the call: an attribute, a parameter or a global."""
    if any(isinstance(one, ast.Call) for one in ast.walk(target)):
        return False
    node: ast.expr = target
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    if not isinstance(node, ast.Name):
        return False
    for made in file.kinds.assigned(line.scope).get(node.id, ()):
        value = getattr(made.node, "value", None)
        if not isinstance(value, ast.Attribute):
            return False
        return _comes_from_outside(value, line, file)
    is_given = node.id in {one.arg for one in line.scope.parameters}
    if line.scope.name == "__init__" and node.id == "self":
        return False  # the object is new
    return is_given or line.scope.name != "__init__"


def _root(target: ast.expr, line: Line, file: File) -> str:
    """`self` of `self.layer.weight`, also where a local name stands for it."""
    node = target
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    name = node.id if isinstance(node, ast.Name) else ""
    for made in file.kinds.assigned(line.scope).get(name, ()):
        value = getattr(made.node, "value", None)
        return _root(value, line, file) if isinstance(value, ast.Attribute) else ""
    return name


def _called_in_loop(root: str, scope: Scope, file: File) -> str:
    """A loop calls this function with the same object in every round."""
    name = scope.owner.name if scope.name == "__init__" and scope.owner else scope.name
    if scope.name != "__init__" and len(file.outline.functions.get(name, ())) != 1:
        return ""
    for line, call in file.outline.calls_of(name):
        if not line.loops or line.scope is scope:
            continue
        loop, given = line.loops[-1], _given(root, scope, call)
        if goes_on(loop, file) and (given is None or _stays(given, loop)):
            return f"in every round of the loop at line {loop.lineno}"
    return ""


def _given(root: str, scope: Scope, call: ast.Call) -> ast.expr | None:
    """What the call gives for the name; None for a global, which is always the same."""
    names = [one.arg for one in scope.parameters]
    if scope.owner is not None and names[:1] == ["self"]:
        if root == "self" and isinstance(call.func, ast.Attribute):
            return call.func.value
        names = names[1:]
    if root not in names:
        return None
    place = names.index(root)
    if place < len(call.args):
        return call.args[place]
    return next((one.value for one in call.keywords if one.arg == root), None)
