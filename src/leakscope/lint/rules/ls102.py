"""LS102 in the source: a running sum adds up tensors with their graphs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.file import File
from leakscope.lint.hit import LIKELY, POSSIBLE, Check, Spot
from leakscope.lint.kind import Kind
from leakscope.lint.outline import Line, key_of, targets_of
from leakscope.lint.values import value_of

_COMPREHENSIONS = ast.Dict | ast.List | ast.DictComp | ast.ListComp


def _find(file: File) -> Iterator[Spot]:
    if not file.outline.has_torch:
        return
    for line in file.outline.assigns:
        added = added_to(line.node)
        if added is None or line.is_grad_off:
            continue
        target, value = added
        known = file.kinds.of(value, line)
        if known.kind is not Kind.GRAPH or file.kinds.is_off(line.scope):
            continue
        if not _lasts(key_of(target), line, file):
            continue
        says = f"`{ast.unparse(target)}` seems to add up `{ast.unparse(value)}` with its graph"
        yield Spot(line.node, says, LIKELY if known.is_sure else POSSIBLE)


def added_to(node: ast.stmt) -> tuple[ast.expr, ast.expr] | None:
    """`total += x`, `total = total + x`, `self.total = self.total + x * n`."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
        is_list = isinstance(node.value, ast.List | ast.ListComp | ast.Tuple)
        return None if is_list else (node.target, node.value)
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return None
    target, value = node.targets[0], node.value
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return None
    own = ast.unparse(target)
    for one, other in ((value.left, value.right), (value.right, value.left)):
        if own in {ast.unparse(part) for part in _terms(one)} and not isinstance(other, ast.List):
            return target, other
    return None


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    """`total`, and `total` in `0.9 * total`."""
    yield node
    if isinstance(node, ast.BinOp):
        yield from _terms(node.left)
        yield from _terms(node.right)


def _lasts(key: str, line: Line, file: File) -> bool:
    """The sum is older than one step, nothing resets it within, and it never goes backward."""
    scope = line.scope
    if not key or scope.name == "forward" or (scope is file.outline.module and not line.loops):
        return False
    if key.startswith("."):
        if any(key in file.kinds.backward_names(one) for one in file.outline.scopes):
            return False
        return _is_made_here(key, line, file) and not _is_reset(key, line, file)
    if key in file.kinds.backward_names(scope):
        return False
    made = [one for one in file.kinds.assigned(scope).get(key, ()) if one is not line]
    values = [value for one in made for value, _ in value_of(one, key)]
    if any(isinstance(value, ast.Tuple | ast.List) for value in values):
        return False  # tuples and lists are joined, not added up
    depth = max((len(one.loops) for one in made if one.order < line.order), default=-1)
    if depth < 0:
        return False
    around = line.loops[depth:]
    if any(file.containers.is_step(loop) for loop in around):
        return True
    return bool(around) and not _is_returned(key, line)


def _is_made_here(key: str, line: Line, file: File) -> bool:
    """Where the file does not show how the sum begins, it does not show how it ends either."""
    return any(
        one is not line
        and isinstance(getattr(one.node, "value", None), ast.Constant | ast.Call | _COMPREHENSIONS)
        and key in map(key_of, targets_of(one.node))
        for one in file.outline.assigns
    )


def _is_reset(key: str, line: Line, file: File) -> bool:
    for one in file.outline.assigns:
        if one is line or one.scope.name in ("__init__", "__post_init__", "reset"):
            continue
        if (
            any(key_of(target) == key for target in targets_of(one.node))
            and added_to(one.node) is None
        ):
            return True
    return any(key in _keys(one) for one in file.outline.calls_of("backward"))


def _keys(pair: tuple[Line, ast.Call]) -> set[str]:
    return {key_of(one) for one in ast.walk(pair[1]) if isinstance(one, ast.Attribute | ast.Name)}


def _is_returned(key: str, line: Line) -> bool:
    """Handed on as it is: the caller may take it backward."""
    for one in line.scope.lines:
        node = one.node
        is_later = not isinstance(node, ast.Assign) or one.order > line.order
        if isinstance(node, ast.Return | ast.Expr | ast.Assign) and is_later:
            value = node.value
            if value is not None and key in map(key_of, _bare(value)):
                return True
    return False


def _bare(node: ast.expr) -> Iterator[ast.expr]:
    """Names that are handed on as tensors: not those inside `float(…)` or before `.item()`."""
    if isinstance(node, ast.Name):
        yield node
    elif isinstance(node, ast.Tuple | ast.List):
        for one in node.elts:
            yield from _bare(one)
    elif isinstance(node, ast.Dict):
        for one in node.values:
            yield from _bare(one)
    elif isinstance(node, ast.BinOp):
        yield from _bare(node.left)
        yield from _bare(node.right)
    elif isinstance(node, ast.Call):
        is_number = isinstance(node.func, ast.Name) and node.func.id in ("float", "print", "int")
        if isinstance(node.func, ast.Attribute) and node.func.attr not in (
            "item",
            "detach",
            "format",
        ):
            yield from _bare(node.func.value)
        for one in () if is_number else node.args:
            yield from _bare(one)


CHECK = Check(
    "LS102",
    "running-sum-with-graph",
    "one autograd graph gets longer with every step",
    "add `.detach()`ed values, or `.item()`",
    _find,
)
