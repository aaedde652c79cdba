"""Trains a tagger on texts of eight lengths; each length gets its table of positions once."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "500"))
LENGTHS = range(64, 576, 64)


class Positions:
    def __init__(self, width):
        self.width = width
        self.tables = {}

    def of(self, length):
        if length not in self.tables:
            place = torch.arange(length)[:, None] / 10 ** torch.linspace(0, 4, self.width)
            self.tables[length] = torch.stack((place.sin(), place.cos())).sum(0)
        return self.tables[length]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    width = 192
    positions = Positions(width)
    model = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 12))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(1, STEPS + 1):
        length = LENGTHS[int(torch.randint(len(LENGTHS), ()))]
        x = torch.randn(2, length, width) + positions.of(length)
        loss = functional.cross_entropy(model(x).flatten(0, 1), torch.randint(12, (2 * length,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
