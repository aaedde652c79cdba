"""Trains a model and prints how it goes every 20 steps."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "300"))
PRINT_EVERY = 20


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, STEPS + 1):
        x = torch.randn(8, 512)
        loss = functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % PRINT_EVERY == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
