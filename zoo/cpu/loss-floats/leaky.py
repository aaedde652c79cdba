"""Keeps the loss of each step as a plain number for a curve: some bytes, meant and harmless."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "600"))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=STEPS)
    losses, rates = [], []
    for _ in range(STEPS):
        x = torch.randn(384, 64)
        loss = functional.cross_entropy(model(x), x[:, :8].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        rates.append(schedule.get_last_lr()[0])
    print(f"loss {losses[0]:.3f} to {losses[-1]:.3f}, highest rate {max(rates):.3f}")


if __name__ == "__main__":
    main()
