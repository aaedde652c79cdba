"""Trains and publishes a preview of each batch in shared memory for a viewer process."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "300"))


class Publisher:
    def __init__(self):
        self.published = []

    def publish(self, preview):
        self.published = [*self.published[-3:], preview.share_memory_()]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 3, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    publisher = Publisher()
    for step in range(1, STEPS + 1):
        x = torch.rand(12, 3, 32, 32)
        y = model(x)
        loss = functional.mse_loss(y, x[:, :, 2:-2, 2:-2])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        publisher.publish(y.detach()[:8].clone())
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
