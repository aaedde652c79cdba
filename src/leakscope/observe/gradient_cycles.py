"""Parameters that their own gradients keep alive.

`backward(create_graph=True)` gives a gradient a graph, the graph leads to the parameter, and the
parameter owns the gradient: a circle in C++ that no collector sees. The model that is dropped
stays, with its gradients and the graph.
"""

from __future__ import annotations

from typing import Any

from leakscope.model import Link
from leakscope.observe.anatomy import class_name, describe
from leakscope.observe.autograd import is_tensor_type, walk, without_torch_functions

_MOST_LOOKED_AT = 64
_MOST_NODES = 2_000


def find_gradient_cycles(objects: list[Any]) -> list[Any]:
    """The tensors among these that their own gradient's graph leads back to."""
    found = []
    with without_torch_functions():
        tensors = [one for one in objects if is_tensor_type(type(one))]
        for tensor in tensors:
            gradient = tensor.grad if tensor.is_leaf and tensor.requires_grad else None
            if gradient is None or gradient.grad_fn is None:
                continue
            graph = walk([gradient.grad_fn], most_nodes=_MOST_NODES)
            if any(leaf is tensor for leaf in graph.leaves):
                found.append(tensor)
            if len(found) >= _MOST_LOOKED_AT:
                break
    return found


def links_of_gradient_cycle(tensor: Any) -> tuple[Link, ...]:
    with without_torch_functions():
        gradient = tensor.grad
        node = class_name(type(gradient.grad_fn))
    return (
        Link("nothing in Python holds it", describe(tensor), "native"),
        Link(".grad", describe(gradient), "gradient", "grad"),
        Link(".grad_fn", node, "graph"),
        Link("… AccumulateGrad of", describe(tensor), "graph"),
    )
