"""A hook stores the activations of a layer, those of the last step only."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "500"))


def build():
    torch.manual_seed(0)
    layers = [nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(2048, 512)).cuda()


class Probe:
    def __init__(self, layer):
        self.seen = None
        layer.register_forward_hook(self.store)

    def store(self, layer, inputs, output):
        self.seen = output.detach()


def train():
    model = build()
    probe = Probe(model[0])
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(STEPS):
        loss = model(torch.randn(256, 1024, device="cuda")).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: {loss.item():.4f}, {probe.seen.amax().item():.3f}")


if __name__ == "__main__":
    train()
