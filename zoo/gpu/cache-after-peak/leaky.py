"""Training with one large evaluation early on; the allocator keeps what it needed."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "500"))


def build():
    torch.manual_seed(0)
    layers = [nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(2048, 512)).cuda()


@torch.no_grad()
def evaluate(model, rows):
    return model(torch.randn(rows, 1024, device="cuda")).amax().item()


def train():
    model = build()
    optimizer = torch.optim.Adam(model.parameters())
    print(f"does it run at all: {evaluate(model, 256):.3f}")
    for step in range(STEPS):
        loss = model(torch.randn(256, 1024, device="cuda")).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 40:
            print(f"evaluation: {evaluate(model, 400_000):.3f}")
        if step % 100 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    train()
