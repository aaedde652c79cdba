"""Trains with a custom activation that has a hand-written backward."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "600"))


class SoftExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(-functional.softplus(-x))
        ctx.y = y
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.y * (1 - ctx.y)


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.project = nn.Linear(width, width)

    def forward(self, x):
        return x * SoftExp.apply(self.project(x))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 256), Gate(256), nn.Linear(256, 6))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, STEPS + 1):
        x = torch.randn(128, 64)
        loss = functional.mse_loss(model(x), x[:, :6] * x[:, 6:12])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
