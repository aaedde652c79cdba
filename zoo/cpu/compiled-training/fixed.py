"""The same model and batch sizes, not compiled."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "600"))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(96, 1024), nn.Linear(1024, 12)

    def forward(self, x):
        return self.second(functional.gelu(self.first(x)))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = Net()
    model = net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    for step in range(1, STEPS + 1):
        size = (384, 320, 256)[step % 3] if step % 40 else 33
        x = torch.randn(size, 96)
        loss = functional.cross_entropy(model(x), x[:, :12].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
