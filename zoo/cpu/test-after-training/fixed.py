"""Trains, then tests: the outputs of the test are collected, without no_grad."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "400"))
TRAINING = STEPS // 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 24, 3), nn.ReLU(), nn.Conv2d(24, 24, 3, 2), nn.ReLU(), nn.Flatten()
        )
        self.head = nn.Linear(24 * 36, 10)

    def forward(self, x):
        return self.head(self.features(x))


def train(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(1, TRAINING + 1):
        x, y = torch.randn(32, 3, 16, 16), torch.randint(0, 10, (32,))
        loss = functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


@torch.no_grad()
def test(model):
    outputs = []
    for _ in range(STEPS - TRAINING):
        outputs.append(model(torch.randn(32, 3, 16, 16)))
        outputs[-1].softmax(1).topk(3)
    return torch.cat(outputs)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Net()
    train(model)
    model.eval()
    print(f"mean confidence {test(model).softmax(1).amax(1).mean():.3f}")


if __name__ == "__main__":
    main()
