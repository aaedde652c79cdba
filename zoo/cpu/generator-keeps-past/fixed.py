"""Trains a frame predictor on windows cut from a synthetic video stream."""

import math
import os
from collections import deque

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
WINDOW = 8


def camera(size=64):
    grid = torch.linspace(0, math.tau, size)
    moment = 0
    while True:
        moment += 1
        red = torch.sin(grid[:, None] + 0.1 * moment) * torch.cos(grid[None] - 0.05 * moment)
        yield torch.stack([red, red.flip(0), red.T]) + 0.05 * torch.randn(3, size, size)


def windows(stream):
    past = deque(maxlen=WINDOW + 1)
    for frame in stream:
        past.append(frame)
        if len(past) > WINDOW:
            recent = list(past)
            yield torch.cat(recent[:-1]), recent[-1]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Conv2d(3 * WINDOW, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 3, 3, padding=1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    clips = windows(camera())
    for step in range(1, STEPS + 1):
        x, y = next(clips)
        loss = functional.mse_loss(model(x[None])[0], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
