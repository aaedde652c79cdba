"""The loss of all steps is summed up as a number."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "600"))


def build():
    torch.manual_seed(0)
    layers = [nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(2048, 512)).cuda()


def train():
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    total = 0.0
    for step in range(STEPS):
        batch = torch.randn(256, 1024, device="cuda")
        penalty = model(batch).pow(2).mean()
        optimizer.zero_grad()
        penalty.backward()
        optimizer.step()
        total += penalty.item()
        if step % 100 == 99:
            print(f"step {step}: {total / (step + 1):.4f}")


if __name__ == "__main__":
    train()
