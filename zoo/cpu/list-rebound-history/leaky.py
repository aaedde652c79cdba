"""Trains an autoencoder and watches how far its code book moves."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


class Monitor:
    def __init__(self, layer):
        self.layer = layer
        self.hist = []

    def after_step(self):
        rows = [self.layer.weight.detach()[:40].clone()]
        self.hist = self.hist + rows

    def drift(self):
        return (self.hist[-1] - self.hist[max(0, len(self.hist) - 10)]).norm().item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    encoder = nn.Linear(256, 512)
    decoder = nn.Linear(512, 256)
    monitor = Monitor(encoder)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    for step in range(1, STEPS + 1):
        x = torch.randn(128, 16) @ torch.ones(16, 256).cumsum(1).sin()
        loss = functional.mse_loss(decoder(encoder(x).relu()), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        monitor.after_step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}, drift {monitor.drift():.4f}")


if __name__ == "__main__":
    main()
