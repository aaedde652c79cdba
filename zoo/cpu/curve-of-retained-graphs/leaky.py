"""Trains a two-headed model: each head goes backward by itself through the shared body."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


class TwoHeads(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(48, width), nn.Tanh(), nn.Linear(width, width))
        self.kind = nn.Linear(width, 6)
        self.age = nn.Linear(width, 1)

    def forward(self, x):
        features = self.body(x).tanh()
        return self.kind(features), self.age(features)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = TwoHeads()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    curve = []
    for step in range(1, STEPS + 1):
        x = torch.randn(32, 48)
        kind, age = model(x)
        by_kind = functional.cross_entropy(kind, x[:, :6].argmax(1))
        by_age = functional.mse_loss(age[:, 0], x.sum(1))
        optimizer.zero_grad()
        by_kind.backward(retain_graph=True)
        by_age.backward(retain_graph=True)
        optimizer.step()
        curve.append(by_kind + by_age)
        if step % 20 == 0:
            print(f"step {step}: loss {sum(curve[-20:]).item() / 20:.3f}")


if __name__ == "__main__":
    main()
