"""A bank of features becomes longer by one batch with every step."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "1000"))


def build():
    torch.manual_seed(0)
    layers = [nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(2048, 512)).cuda()


class Bank:
    def __init__(self):
        self.features = torch.zeros(0, 512, device="cuda")

    def add(self, features):
        self.features = torch.cat([self.features, features])


def collect():
    model = build().eval()
    bank = Bank()
    with torch.no_grad():
        for step in range(STEPS):
            bank.add(model(torch.randn(128, 1024, device="cuda")))
            if step % 100 == 0:
                print(f"step {step}: {len(bank.features)} features")


if __name__ == "__main__":
    collect()
