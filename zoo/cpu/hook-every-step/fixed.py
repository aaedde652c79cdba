"""Trains a small network and looks at the activations of its middle layer at each step."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "240"))


class ActivationProbe:
    """Remembers what a layer gave out the last time."""

    def __init__(self, layer):
        self.stats = {}
        self.handle = layer.register_forward_hook(self.remember)

    def remember(self, module, args, output):
        values = output.detach()
        self.stats["mean"] = values.mean(0)
        self.stats["peak"] = values.amax(0)
        self.stats["dead"] = values.count_nonzero(0)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(1, STEPS + 1):
        x, y = torch.randn(64, 64), torch.randint(0, 10, (64,))
        probe = ActivationProbe(model[1])
        loss = functional.cross_entropy(model(x), y)
        probe.handle.remove()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            dead = (probe.stats["dead"] == 0).sum().item()
            print(f"step {step}: loss {loss.item():.3f}, dead {dead}")


if __name__ == "__main__":
    main()
