"""A training loop as people write it, with one line too much.

`history` is meant to hold numbers for a plot, but it holds the loss tensors themselves, and each
of them keeps the autograd graph of its step alive.
"""

import torch
from torch import nn

STEPS = 400


def make_batch(size=32, features=64):
    x = torch.randn(size, features)
    return x, (x[:, :10]).argmax(dim=1)


def train():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    history = []
    for step in range(1, STEPS + 1):
        x, y = make_batch()
        hidden = model[:-1](x)
        loss = nn.functional.cross_entropy(model[-1](hidden), y)
        penalty = hidden.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(penalty)
        if step % 100 == 0:
            mean = sum(p.item() for p in history) / step
            print(f"step {step:4d}  loss {loss.item():.4f}  mean penalty {mean:.4f}")


if __name__ == "__main__":
    train()
