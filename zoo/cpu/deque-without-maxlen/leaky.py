"""Streams frames through a detector and smooths its feature maps over time."""

import os
from collections import deque
from itertools import islice

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


class Smoother:
    def __init__(self, window=6):
        self.window = window
        self.recent = deque()

    def __call__(self, maps):
        self.recent.appendleft(maps)
        return torch.stack(list(islice(self.recent, self.window))).mean(0)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 32, 5, 2, padding=1), nn.ReLU()
        )
        self.smooth = Smoother()
        self.head = nn.Conv2d(32, 4, 1)

    def forward(self, frame):
        maps = self.backbone(frame)
        return self.head(self.smooth(maps))


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    detector = Detector().eval()
    for step in range(1, STEPS + 1):
        boxes = detector(torch.rand(1, 3, 64, 64).cumsum(3))
        if step % 10 == 0:
            print(f"frame {step}: highest {boxes.amax():.3f}")


if __name__ == "__main__":
    main()
