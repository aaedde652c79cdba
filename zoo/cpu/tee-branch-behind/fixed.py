"""Trains from a stream of batches and, at the end, reports on the first few of them."""

import itertools
import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


def stream():
    generator = torch.Generator().manual_seed(0)
    turn = torch.randn(96, 8, generator=generator)
    for _ in range(STEPS):
        x = torch.randn(64, 96, generator=generator)
        yield x, (x @ turn).tanh()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(96, 900), nn.ReLU(), nn.Linear(900, 8))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for_training, for_report = stream(), stream()
    for step, (x, y) in enumerate(for_training, 1):
        loss = functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    with torch.no_grad():
        for x, y in itertools.islice(for_report, 3):
            print(f"error {(model(x) - y).abs().mean():.4f}")


if __name__ == "__main__":
    main()
