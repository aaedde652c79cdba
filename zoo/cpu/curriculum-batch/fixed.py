"""The same training with the last batch size from the start."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "300"))


def batch_size(step):
    return 136 if step else 0


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(256, 384), nn.ReLU(), nn.Linear(384, 256))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, STEPS + 1):
        x = torch.randn(batch_size(step), 256)
        restored = model(x + 0.1 * torch.randn_like(x))
        loss = functional.mse_loss(restored, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: batch {len(x)}, loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
