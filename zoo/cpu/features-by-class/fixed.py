"""Few-shot style training: class prototypes are the means of the features seen so far."""

import os
from collections import defaultdict, deque

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
CLASSES = 12


class PrototypeBank:
    def __init__(self):
        self.by_class = defaultdict(lambda: deque(maxlen=50))

    def update(self, features, labels):
        for feature, label in zip(features, labels.tolist(), strict=True):
            self.by_class[label].append(feature.clone())

    def prototype(self, label):
        return torch.stack(list(self.by_class[label])).mean(0)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    centres = torch.randn(CLASSES, 48)
    encoder = nn.Sequential(nn.Linear(48, 1024), nn.GELU(), nn.Linear(1024, 160))
    head = nn.Linear(160, CLASSES)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-3)
    bank = PrototypeBank()
    for step in range(1, STEPS + 1):
        y = torch.randint(0, CLASSES, (64,))
        features = encoder(centres[y] + torch.randn(64, 48))
        loss = functional.cross_entropy(head(features), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        bank.update(features.detach(), y)
        if step % 10 == 0:
            spread = (bank.prototype(0) - bank.prototype(1)).norm()
            print(f"step {step}: loss {loss.item():.3f}, spread {spread:.3f}")


if __name__ == "__main__":
    main()
