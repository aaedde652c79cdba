"""Distils with label smoothing; the smoothed targets of a batch are computed once and reused."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
CLASSES = 120
_SOFT_TARGETS = {}


def soft_targets(labels, amount=0.1):
    entry = _SOFT_TARGETS.get(id(labels))
    if entry is None:
        target = torch.full((len(labels), CLASSES), amount / CLASSES)
        target.scatter_(1, labels[:, None], 1.0 - amount)
        _SOFT_TARGETS.clear()
        entry = _SOFT_TARGETS[id(labels)] = (labels, target)
    return entry[1]


def training_step(model, optimizer, x, labels):
    for _ in range(2):
        loss = functional.cross_entropy(model(x), soft_targets(labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(80, 768), nn.ReLU(), nn.Linear(768, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, STEPS + 1):
        labels = torch.randint(0, CLASSES, (96,))
        x = functional.one_hot(labels % 80, 80) + 0.3 * torch.randn(96, 80)
        loss = training_step(model, optimizer, x, labels)
        if step % 10 == 0:
            print(f"step {step}: loss {loss:.3f}")


if __name__ == "__main__":
    main()
