"""Trains a colour field and renders a preview after each step in a pool of threads."""

import os
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "600"))


def render(weights, size=160):
    with torch.no_grad():
        line = torch.linspace(-1, 1, size)
        y, x = torch.meshgrid(line, line, indexing="ij")
        hidden = torch.tanh(torch.stack([x, y], -1) @ weights[0].T + weights[1])
        return (hidden @ weights[2].T + weights[3]).sigmoid().mul(255).byte()


class Previews:
    def __init__(self):
        self.pool = ThreadPoolExecutor(2)
        self.jobs = []

    def request(self, model):
        weights = [p.detach().clone() for p in model.parameters()]
        self.jobs.append(self.pool.submit(render, weights))

    def brightness(self):
        return self.jobs[-1].result().float().mean().item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    previews = Previews()
    for step in range(1, STEPS + 1):
        x = 2 * torch.rand(4096, 2) - 1
        target = torch.stack([x[:, 0].abs(), x[:, 1].abs(), x.norm(dim=1) / 2], 1)
        loss = functional.mse_loss(model(x).sigmoid(), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        previews.request(model)
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}, brightness {previews.brightness():.0f}")
    previews.pool.shutdown()


if __name__ == "__main__":
    main()
