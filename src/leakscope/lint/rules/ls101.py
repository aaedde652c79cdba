"""LS101 in the source: a tensor with its graph goes into a container that lasts."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakscope.lint.containers import Store
from leakscope.lint.file import File
from leakscope.lint.hit import LIKELY, POSSIBLE, Check, Spot
from leakscope.lint.kind import Kind
from leakscope.lint.outline import key_of, last_name
from leakscope.lint.repeated import evaluates


def _find(file: File) -> Iterator[Spot]:
    if not file.outline.has_torch:
        return
    for store in file.containers.stores:
        if store.line.is_grad_off or _is_replaced(store):
            continue
        known = file.kinds.of(store.value, store.line)
        if known.kind is not Kind.GRAPH or file.kinds.is_off(store.line.scope):
            continue
        if file.containers.outlives(store) and not _is_used_later(store, file):
            what, name = ast.unparse(store.value), ast.unparse(store.container)
            says = f"`{name}` seems to keep `{what}` with its autograd graph"
            is_sure = known.is_sure and store.line.scope.name not in _CALLED_BY_OTHERS
            yield Spot(store.node, says, LIKELY if is_sure else POSSIBLE)


def _is_replaced(store: Store) -> bool:
    """Stored under the name of a layer: there are as many as there are layers."""
    node = store.node
    if store.how != "item" or not isinstance(node, ast.Assign):
        return False
    keys = [one.slice for one in node.targets if isinstance(one, ast.Subscript)]
    return any(last_name(key) in _FEW for key in keys)


_FEW = frozenset({"name", "key", "k", "layer", "layer_idx", "layer_id", "layer_name", "tag"})


def _is_used_later(store: Store, file: File) -> bool:
    """The container is what goes backward, or what a forward pass hands on."""
    key, scope = key_of(store.container), store.line.scope
    if key in file.kinds.backward_names(scope):
        return True
    if key.startswith("."):
        return any(
            key in file.kinds.backward_names(one)
            for one in file.outline.scopes
            if one.owner is not None
        )
    if any(file.containers.is_step(loop) for loop in store.line.loops):
        return False
    # In a loop without a step a forward pass collects its parts, unless it is an evaluation.
    return not evaluates(store.line)


_CALLED_BY_OTHERS = frozenset({"forward", "validation_step", "test_step", "predict_step"})
"""Whether gradients are on in there is for their callers to say."""


CHECK = Check(
    "LS101",
    "kept-with-graph",
    "tensors are kept while they still carry their autograd graphs",
    "keep `.detach()` of it, `.item()` for a number, or compute it under torch.no_grad()",
    _find,
)
