"""Training of a small network: the GPU waits for launches, some 1.5 ms a step on an H200."""

import sys

import torch
from gpu_variants import run
from torch import nn


def make_step():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
    ).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(32, 64, device="cuda")
    target = torch.randint(0, 10, (32,), device="cuda")

    def step():
        loss = nn.functional.cross_entropy(model(batch), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


if __name__ == "__main__":
    run(make_step(), sys.argv[1])
