"""Trains a network and logs the gradient norm of each layer, for a plot at the end."""

import os
from collections import defaultdict

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Linear(50, 500), nn.ReLU(), nn.Linear(500, 500), nn.ReLU(), nn.Linear(500, 3)
    )
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
    norms = defaultdict(list)
    for step in range(1, STEPS + 1):
        x = torch.randn(128, 50)
        loss = functional.smooth_l1_loss(model(x), x[:, :3].exp().clamp(max=5))
        optimizer.zero_grad()
        loss.backward()
        for name, weight in model.named_parameters():
            norms[name] = [*norms[name][-20:], weight.grad.norm().item()]
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}, first layer {norms['0.weight'][-1]:.4f}")
    for name, values in norms.items():
        print(f"{name}: {sum(values) / len(values):.4f}")


if __name__ == "__main__":
    main()
