"""Trains with per-sample predictions gathered over an epoch to find the hardest ones."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
EPOCH = 25
CLASSES = 96


class Hardest:
    def __init__(self):
        self.by_sample = {}

    def add(self, ids, logits, y):
        for number, row, label in zip(ids, logits.detach(), y.tolist(), strict=True):
            self.by_sample[number] = (row.clone(), label)

    def end_of_epoch(self, count=5):
        margin = {number: row[label].item() for number, (row, label) in self.by_sample.items()}
        self.by_sample.clear()
        return sorted(margin, key=margin.get)[:count]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 640), nn.ReLU(), nn.Linear(640, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    hardest = Hardest()
    for step in range(1, STEPS + 1):
        x, y = torch.randn(64, 64), torch.randint(0, CLASSES, (64,))
        logits = model(x)
        loss = functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hardest.add(range(64 * step, 64 * step + 64), logits, y)
        if step % EPOCH == 0:
            print(f"step {step}: loss {loss.item():.3f}, hardest {hardest.end_of_epoch()}")


if __name__ == "__main__":
    main()
