"""Trains with the collector switched off, and collects every 60 steps to keep steps even."""

import gc
import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "600"))
COLLECT_EVERY = 60


class Sample:
    def __init__(self, batch, pixels):
        self.batch = batch
        self.pixels = pixels


class Batch:
    def __init__(self, count):
        self.samples = [Sample(self, torch.randn(1024)) for _ in range(count)]

    def stacked(self):
        return torch.stack([sample.pixels for sample in self.samples])


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    gc.disable()
    model = nn.Sequential(nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 1024))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, STEPS + 1):
        x = Batch(64).stacked()
        loss = functional.mse_loss(model(x), x.flip(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % COLLECT_EVERY == 0:
            gc.collect()
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
