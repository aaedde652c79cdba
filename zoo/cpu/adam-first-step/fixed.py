"""Trains an autoencoder with plain gradient descent, which has no state."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "300"))


def build():
    return nn.Sequential(nn.Linear(768, 2048), nn.ReLU(), nn.Linear(2048, 768))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, STEPS + 1):
        x = torch.randn(8, 768)
        loss = functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
