"""A graph that grows is found, however many tensors lie inside of it."""

from __future__ import annotations

import pytest

from leakscope.observe.graphs import find_growing_graphs, note_graphs
from leakscope.observe.old_heap import Heap

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = pytest.mark.torch


def test_an_average_behind_many_saved_activations_is_found() -> None:
    """Breaks when what graphs have saved takes the places of what Python holds."""
    weight = torch.randn(8, 8, requires_grad=True)
    average = torch.zeros(3, 8)

    def step() -> None:
        nonlocal average
        activation = torch.randn(3, 8)
        for _ in range(40):
            activation = torch.relu(activation @ weight) * weight[0]
        average = 0.9 * average + 0.1 * activation

    for _ in range(10):
        step()
    noted = note_graphs(Heap().tensors)
    for _ in range(10):
        step()
    tensors = Heap().tensors
    assert sum(tensor.grad_fn is not None for tensor in tensors) > 300
    growing, _ = find_growing_graphs(tensors, noted, 10)
    assert any(one.tensor is average for one in growing)
