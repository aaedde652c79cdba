"""Trains a mixture of experts; domains come up one after another, each with its own expert."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
EXPERTS = 24


class Mixture(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.shared = nn.Linear(32, width)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(EXPERTS))
        self.head = nn.Linear(width, 8)

    def forward(self, x, domain):
        return self.head(self.experts[domain](self.shared(x).relu()).relu())


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Mixture()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, STEPS + 1):
        known = min(EXPERTS, 1 + (step - 1) * 2 * EXPERTS // STEPS)
        domain = int(torch.randint(0, known, ())) if step % 2 else known - 1
        x = torch.randn(384, 32)
        loss = functional.mse_loss(model(x, domain), (x[:, :8] + domain / EXPERTS).tanh())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}, states {len(optimizer.state)}")


if __name__ == "__main__":
    main()
