"""Segments images of any size; the distance prior of each size is cached."""

import functools
import os
import random

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "400"))


@functools.lru_cache(maxsize=16)
def distance_prior(height, width):
    y = torch.linspace(-1, 1, height)[:, None]
    x = torch.linspace(-1, 1, width)[None]
    return torch.exp(-(x**2 + y**2))


def main():
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 1, 3, padding=1))
    net.eval()
    for step in range(1, STEPS + 1):
        height, width = random.randrange(40, 140), random.randrange(40, 140)
        with torch.inference_mode():
            mask = net(torch.rand(1, 3, height, width)).sigmoid() * distance_prior(height, width)
        if step % 50 == 0:
            print(f"image {step}: {height}x{width}, {mask.mean():.3f}")


if __name__ == "__main__":
    main()
