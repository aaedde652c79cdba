"""Trains, and has the last batch written out at the end should the program be stopped."""

import atexit
import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "1500"))


def write_out(latest):
    latest.clear()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    latest = {}
    atexit.register(write_out, latest)
    for step in range(1, STEPS + 1):
        x, y = torch.randn(48, 256), torch.randint(0, 10, (48,))
        loss = functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        latest.update(batch=x, step=step)
        if step % 500 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
