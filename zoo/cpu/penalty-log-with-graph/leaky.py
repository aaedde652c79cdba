"""Trains an autoencoder and logs how sparse its code is, beside the loss."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


class Log:
    def __init__(self):
        self.losses = []
        self.sparsity = []

    def add(self, loss, code):
        self.losses.append(loss.item())
        self.sparsity.append(code.abs().mean())

    def last(self):
        return f"loss {self.losses[-1]:.4f}, sparsity {self.sparsity[-1]:.3f}"


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    encoder = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 16))
    decoder = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 64))
    weights = [*encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.Adam(weights, lr=1e-3)
    log = Log()
    for step in range(1, STEPS + 1):
        x = torch.randn(64, 64).cumsum(1)
        code = encoder(x)
        loss = functional.mse_loss(decoder(code), x)
        log.add(loss, encoder(x + 0.1 * torch.randn_like(x)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: {log.last()}")


if __name__ == "__main__":
    main()
