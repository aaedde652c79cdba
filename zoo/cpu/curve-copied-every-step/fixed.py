"""Trains and stores, for a live plot, the whole loss curve so far at each step."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "500"))


class LivePlot:
    def __init__(self):
        self.curve = []
        self.frames = []

    def add(self, loss):
        self.curve.append(loss)
        self.frames = [torch.tensor(self.curve)]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(50, 600), nn.Tanh(), nn.Linear(600, 600), nn.Linear(600, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    plot = LivePlot()
    for step in range(1, STEPS + 1):
        x = torch.randn(96, 50)
        loss = functional.mse_loss(model(x), x[:, :5].sin())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        plot.add(loss.item())
        if step % 100 == 0:
            print(f"step {step}: loss {plot.frames[-1][-20:].mean():.4f}")


if __name__ == "__main__":
    main()
