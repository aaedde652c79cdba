"""Texts of different lengths, cut or padded to one length."""

import os
import random

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "600"))
LENGTH = 256


def train():
    torch.manual_seed(0)
    random.seed(0)
    model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(STEPS):
        length = int(64 * random.paretovariate(1.6)) + 32
        batch = torch.zeros(32, LENGTH, 256, device="cuda")
        batch[:, :length].normal_()
        loss = (model(batch) - batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del batch
        if step % 100 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    train()
