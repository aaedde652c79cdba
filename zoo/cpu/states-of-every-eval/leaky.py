"""Trains a regressor; after each evaluation the weights are set aside for the best one."""

import copy
import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "400"))
EVAL_EVERY = 20


class EarlyStopping:
    def __init__(self):
        self.best = float("inf")
        self.snapshots = []

    def update(self, score, model):
        self.snapshots.append((score, copy.deepcopy(model.state_dict())))
        self.best = min(self.best, score)


def batch(count):
    x = torch.randn(count, 32)
    return x, x.pow(2).sum(1, keepdim=True).sqrt()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Linear(32, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    stopping = EarlyStopping()
    for step in range(1, STEPS + 1):
        x, y = batch(256)
        loss = functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % EVAL_EVERY == 0:
            with torch.no_grad():
                x, y = batch(2048)
                score = functional.mse_loss(model(x), y).item()
            stopping.update(score, model)
            print(f"step {step}: validation {score:.4f}, best {stopping.best:.4f}")


if __name__ == "__main__":
    main()
