"""Texts of different lengths, padded to the longest of each batch."""

import os
import random

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "600"))


def train():
    torch.manual_seed(0)
    random.seed(0)
    model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(STEPS):
        length = int(64 * random.paretovariate(1.6)) + 32
        batch = torch.randn(32, min(length, 6000), 256, device="cuda")
        loss = (model(batch) - batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del batch
        if step % 100 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    train()
