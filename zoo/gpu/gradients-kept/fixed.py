"""The norm of the gradients of every step is kept to compare them."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "400"))


class History:
    def __init__(self):
        self.gradients = []

    def note(self, layer):
        self.gradients.append(layer.weight.grad.norm().item())


def train():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    history = History()
    for step in range(STEPS):
        loss = model(torch.randn(256, 1024, device="cuda")).pow(2).mean()
        loss.backward()
        optimizer.step()
        history.note(model[2])
        optimizer.zero_grad(set_to_none=True)
        if step % 100 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    train()
