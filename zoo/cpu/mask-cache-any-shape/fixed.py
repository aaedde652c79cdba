"""Segments images of any size; the distance prior of each size is cached."""

import functools
import os
import random

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "500"))


@functools.lru_cache(maxsize=16)
def distance_prior(height, width):
    y = torch.linspace(-1, 1, height)[:, None]
    x = torch.linspace(-1, 1, width)[None]
    return torch.exp(-(x**2 + y**2))


def main():
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 1))
    net.eval()
    for step in range(1, STEPS + 1):
        height, width = random.randrange(60, 180), random.randrange(60, 180)
        with torch.inference_mode():
            scores = net(torch.rand(height, width, 3))[..., 0]
            mask = scores.sigmoid() * distance_prior(height, width)
        if step % 50 == 0:
            print(f"image {step}: {height}x{width}, {mask.mean():.3f}")


if __name__ == "__main__":
    main()
