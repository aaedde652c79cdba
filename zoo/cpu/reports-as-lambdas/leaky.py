"""Trains a classifier; reports are put off as functions and shown at the end."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "240"))


class Reports:
    def __init__(self):
        self.later = []

    def put_off(self, step, logits, y):
        self.later.append(lambda: f"step {step}: {(logits.argmax(1) == y).float().mean():.2f}")

    def show(self, count):
        for report in self.later[-count:]:
            print(report())


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    centres = torch.randn(200, 64)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 200))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    reports = Reports()
    for step in range(1, STEPS + 1):
        y = torch.randint(0, 200, (128,))
        logits = model(centres[y] + torch.randn(128, 64))
        loss = functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        reports.put_off(step, logits.detach(), y)
    reports.show(5)


if __name__ == "__main__":
    main()
