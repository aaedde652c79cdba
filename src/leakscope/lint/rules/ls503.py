"""LS503 in the source: an array is replaced by itself and a bit more."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.file import File
from leakscope.lint.hit import LIKELY, POSSIBLE, Check, Spot
from leakscope.lint.names import LOADER_NAME
from leakscope.lint.outline import Line, Loop, dotted, key_of, last_name, targets_of

_JOINS = frozenset({"cat", "concat", "concatenate", "append", "vstack", "hstack", "column_stack"})
_LIBRARIES = frozenset({"torch", "np", "numpy", "jnp", "tf"})


def _find(file: File) -> Iterator[Spot]:
    for line in file.outline.assigns:
        node = line.node
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        call, target = node.value, node.targets[0]
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr not in _JOINS or dotted(call.func.value) not in _LIBRARIES:
            continue
        key = key_of(target)
        if not key or isinstance(target, ast.Subscript) or key not in _joined(call):
            continue
        certainty = _lasts(key, line, file)
        if certainty:
            name = ast.unparse(target)
            yield Spot(node, f"`{name}` seems to become longer with every round", certainty)


def _joined(call: ast.Call) -> set[str]:
    """Keys of the arrays that are joined, as they are: a slice of one is a bound."""
    parts = list(call.args[:2] if last_name(call.func) == "append" else call.args[:1])
    parts += [one.value for one in call.keywords if one.arg in ("tensors", "arrays")]
    found: set[str] = set()
    for part in parts:
        elements = part.elts if isinstance(part, ast.Tuple | ast.List) else [part]
        found |= {key_of(one) for one in elements if isinstance(one, ast.Name | ast.Attribute)}
    return found - {""}


def _lasts(key: str, line: Line, file: File) -> str:
    scope = line.scope
    if key.startswith("."):
        is_own = scope.owner is not None and scope.name not in ("__init__", "forward")
        others = [one for one in file.outline.assigns if one is not line and _assigns(one, key)]
        is_reset = any(one.scope.name not in ("__init__", "__post_init__") for one in others)
        return POSSIBLE if is_own and others and not is_reset else ""
    made = [one for one in file.kinds.assigned(scope).get(key, ()) if one is not line]
    before = [one for one in made if one.order < line.order]
    if not before or not line.loops:
        return ""
    around = line.loops[max(len(one.loops) for one in before) :]
    if not around or any(one.order > line.order and around[0] in one.loops for one in made):
        return ""
    if any(file.containers.is_step(loop) for loop in around):
        return LIKELY
    return POSSIBLE if any(_is_open(loop) for loop in around) else ""


def _assigns(line: Line, key: str) -> bool:
    return any(key_of(one) == key for one in targets_of(line.node))


def _is_open(loop: Loop) -> bool:
    """Over a loader, or for ever."""
    if isinstance(loop, ast.While):
        return isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    return any(LOADER_NAME.search(last_name(one)) for one in ast.walk(loop.iter))


CHECK = Check(
    "LS503",
    "array-grows",
    "an array or tensor is replaced by a longer one in every step",
    "cut it to what is used (`x = torch.cat((x, new))[-limit:]`), or collect in a bounded deque",
    _find,
)
