"""Trains with the collector switched off for speed; each result can be asked for its error."""

import gc
import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "240"))


class Result:
    def __init__(self, prediction, target):
        self.prediction = prediction
        self.target = target

    def error(self):
        return (self.prediction - self.target).abs().mean().item()


def main():
    gc.disable()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(48, 512), nn.ReLU(), nn.Linear(512, 48))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, STEPS + 1):
        x = torch.randn(256, 48)
        y = model(x)
        loss = functional.mse_loss(y, x.sort(1).values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        result = Result(y.detach(), x.sort(1).values)
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.4f}, error {result.error():.3f}")


if __name__ == "__main__":
    main()
