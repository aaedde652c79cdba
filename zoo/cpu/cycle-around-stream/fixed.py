"""Trains on an endless stream of batches that is started anew at its end."""

import os

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset

STEPS = int(os.environ.get("ZOO_STEPS", "240"))


class Signals(IterableDataset):
    def __iter__(self):
        for number in range(32 * STEPS):
            phase = torch.arange(512) * (1 + number % 13) / 100
            yield torch.sin(phase), number % 13


def forever(loader):
    while True:
        yield from loader


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    batches = forever(DataLoader(Signals(), 32))
    model = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 13))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, STEPS + 1):
        x, y = next(batches)
        loss = functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
