"""A PyTorch program that leaks in several ways; it takes a snapshot of itself at three moments.

Run by test_heap_real.py.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

import torch

from leakscope.frameworks.torch_edges import TorchEdges
from leakscope.observe.heap.snapshot import Moment, take_snapshot

STEPS = 45
LOOKS = (15, 30, 45)

history: list[Any] = []
detached: list[Any] = []


class Meter:
    def __init__(self) -> None:
        self.total: Any = 0.0


def keep_by_gradient() -> None:
    """Parameters whose gradients lead back to them, and nobody else."""
    weight = torch.ones(64, 64, requires_grad=True)
    weight.pow(3).sum().backward(create_graph=True)  # type: ignore[no-untyped-call]


def main(folder: str) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters())
    meter, seen = Meter(), torch.zeros(0, 32)
    hidden = torch.zeros(4, 16)
    cell = torch.nn.RNNCell(32, 16)
    for number in range(1, STEPS + 1):
        batch = torch.randn(4, 32)
        loss = model(batch).pow(2).mean()
        history.append(loss)
        detached.append(loss.detach())
        meter.total = meter.total + loss
        hidden = cell(batch, hidden)
        seen = torch.cat([seen, batch])
        keep_by_gradient()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        if number == 1:
            gc.collect()  # what importing has left behind
        if number in LOOKS:
            at = LOOKS.index(number) + 1
            moment = Moment("1-1", at, number, "api")
            take_snapshot(f"{folder}/{at}.heap", moment, [TorchEdges()])


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main(sys.argv[1])
