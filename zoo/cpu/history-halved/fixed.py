"""Watches a deployed model for drift: recent activations are compared with a reference."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


class DriftWatch:
    def __init__(self, reference, longest=6):
        self.reference = reference
        self.longest = longest
        self.recent = []

    def add(self, activations):
        self.recent.append(activations)
        if len(self.recent) > self.longest:
            self.recent = self.recent[-self.longest // 2 :]

    def distance(self):
        return (torch.stack(self.recent).mean((0, 1)) - self.reference).norm().item()


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(128, 1024), nn.GELU(), nn.Linear(1024, 128)).eval()
    watch = DriftWatch(model(torch.randn(2048, 128)).mean(0))
    for step in range(1, STEPS + 1):
        watch.add(model(torch.randn(96, 128) + 0.001 * step))
        if step % 10 == 0:
            print(f"batch {step}: distance {watch.distance():.4f}")


if __name__ == "__main__":
    main()
