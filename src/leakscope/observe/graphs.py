"""Autograd graphs that grow: a running sum, a state carried over steps.

Such a tensor is made anew with every step, so it has no address to compare; its graph's size is
noted under what it looks like (the operation that made it, its shape), and compared by that. After
`backward()` the saved tensors are gone and only C++ nodes pile up, which no collector sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, compress, islice
from sys import getrefcount
from typing import Any, NamedTuple

from leakscope.observe.autograd import count_nodes, references_in_c, without_torch_functions

_MOST_TENSORS = 256
_MOST_NODES = 60_000
"""Nodes counted of one graph, and tensors looked at: those that Python holds, the youngest first,
for the end of a growing graph is never old; then what graphs have saved. An average of a teacher's
outputs lay behind a thousand activations that its graph had saved, and was not found."""

_MOST_NODES_IN_ALL = 150_000
"""Of all graphs of one look, at 1 µs each, and 3 while allocations are traced: a state that is
carried on has 13,000 nodes after 43 steps of a recurrent net, and so have a hundred tensors beside
it. To count them all was 1.0 s of a look of 1.3."""

_FEWEST_NODES = 4
_FEWEST_NODES_A_STEP = 0.3
_MOST_GROWING = 6

Looks = tuple[str, tuple[int, ...]]


class GraphSizes(NamedTuple):
    """The largest graph of each look, at one moment."""

    nodes: dict[Looks, int]


class GrowingGraph(NamedTuple):
    """A tensor whose graph has become larger. Lives within one look only."""

    tensor: Any
    before: int
    now: int
    alike: int = 1
    """So many tensors look the same and have a graph of this size: a teacher's weights, say."""


def note_graphs(tensors: list[Any]) -> GraphSizes:
    nodes: dict[Looks, int] = {}
    for looks, count, _ in _graphs_among(tensors):
        nodes[looks] = max(count, nodes.get(looks, 0))
    return GraphSizes(nodes)


def find_growing_graphs(
    tensors: list[Any], before: GraphSizes, steps: int
) -> tuple[list[GrowingGraph], GraphSizes]:
    """Tensors whose graph grew by some nodes with each step, the smallest first; and all sizes."""
    fewest = max(_FEWEST_NODES, _FEWEST_NODES_A_STEP * steps)
    largest: dict[Looks, tuple[int, Any, int]] = {}
    for looks, count, tensor in _graphs_among(tensors):
        # Earlier states live on in the graph and look the same; the last one has them all.
        known, first, alike = largest.get(looks, (0, tensor, 0))
        if count > known:
            largest[looks] = (count, tensor, 1)
        elif count == known:
            largest[looks] = (known, first, alike + 1)
    growing = [
        GrowingGraph(tensor, before.nodes[looks], count, alike)
        for looks, (count, tensor, alike) in largest.items()
        if looks in before.nodes and count - before.nodes[looks] >= fewest
    ]
    # The state that is carried on lies at the bottom of the loss's graph: the smaller is the cause.
    growing.sort(key=lambda one: one.now)
    sizes = GraphSizes({looks: count for looks, (count, _, _) in largest.items()})
    return growing[:_MOST_GROWING], sizes


def _graphs_among(tensors: list[Any]) -> Iterator[tuple[Looks, int, Any]]:
    if not tensors:
        return
    with without_torch_functions():
        left = _MOST_NODES_IN_ALL
        for tensor in _held_first([tensor for tensor in tensors if tensor.grad_fn is not None]):
            node = tensor.grad_fn
            looks = type(node).__name__, tuple(tensor.shape)
            count = count_nodes(node, _MOST_NODES)
            yield looks, count, tensor
            left -= count
            if left <= 0:
                break


def _held_first(tensors: list[Any]) -> list[Any]:
    """So many of them, in their order; first those to which Python refers, and not only C++, which
    has a reference of its own to the Python object of a tensor that it uses (torch 2.13)."""
    references = [getrefcount(one) - (references_in_c(one) > 1) for one in tensors]
    fewest = min(references, default=0)
    is_held = [count > fewest for count in references]
    saved = (tensor for tensor, is_one in zip(tensors, is_held, strict=True) if not is_one)
    return list(islice(chain(compress(tensors, is_held), saved), _MOST_TENSORS))
