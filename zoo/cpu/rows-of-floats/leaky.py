"""Trains a regressor and gathers one row of statistics for each sample, for a data frame."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "400"))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(40, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.Linear(1000, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rows = []
    for step in range(1, STEPS + 1):
        x = torch.randn(32, 40)
        y = x.abs().mean(1, keepdim=True)
        predicted = model(x)
        loss = functional.mse_loss(predicted, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for truth, guess in zip(y[:, 0].tolist(), predicted[:, 0].tolist(), strict=True):
            rows.append({"step": step, "truth": truth, "guess": guess, "error": guess - truth})
        if step % 50 == 0:
            mean = sum(abs(row["error"]) for row in rows[-320:]) / 320
            print(f"step {step}: error {mean:.4f}")


if __name__ == "__main__":
    main()
