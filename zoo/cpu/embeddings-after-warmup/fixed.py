"""Contrastive training; once the warm-up is over, embeddings are collected for a plot."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "300"))


class Trainer:
    def __init__(self):
        self.encoder = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 64))
        self.optimizer = torch.optim.AdamW(self.encoder.parameters(), lr=1e-3)
        self.for_plot = []

    def step(self, number):
        x = torch.randn(192, 128)
        one = functional.normalize(self.encoder(x + 0.1 * torch.randn_like(x)), dim=1)
        two = functional.normalize(self.encoder(x + 0.1 * torch.randn_like(x)), dim=1)
        loss = functional.cross_entropy(one @ two.T / 0.1, torch.arange(len(x)))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if number > 0.4 * STEPS:
            self.for_plot = [*self.for_plot[-9:], one.detach().numpy()]
        return loss.item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    trainer = Trainer()
    for step in range(1, STEPS + 1):
        loss = trainer.step(step)
        if step % 50 == 0:
            print(f"step {step}: loss {loss:.3f}")


if __name__ == "__main__":
    main()
