"""Trains a classifier; from the first step an averaged copy of the weights is kept too."""

import copy
import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "300"))
EMA_FROM = 1


@torch.no_grad()
def update(average, model, decay=0.99):
    for mean, parameter in zip(average.parameters(), model.parameters(), strict=True):
        mean.lerp_(parameter, 1 - decay)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    average = None
    for step in range(1, STEPS + 1):
        x = torch.randn(192, 128)
        loss = functional.cross_entropy(model(x), x[:, :10].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step == EMA_FROM:
            average = copy.deepcopy(model)
        if average is not None:
            update(average, model)
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}, rate {schedule.get_last_lr()[0]:.2e}")


if __name__ == "__main__":
    main()
