"""Trains an encoder that keeps a running centre of its features, as DINO does."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


class Centered(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(48, 256), nn.GELU(), nn.Linear(256, width))
        self.register_buffer("center", torch.zeros(width))

    def forward(self, x):
        features = self.body(x)
        shifted = features - self.center.detach()
        self.center = 0.9 * self.center + 0.1 * features.mean(0)
        return shifted


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Centered()
    head = nn.Linear(128, 48)
    weights = [*model.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=1e-3)
    for step in range(1, STEPS + 1):
        x = torch.randn(64, 48)
        loss = functional.mse_loss(head(model(x)), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.4f}, centre {model.center.norm().item():.3f}")


if __name__ == "__main__":
    main()
