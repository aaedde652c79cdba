"""Random search over widths and learning rates: many short trainings, one after another."""

import os
import random

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
ROUND = 5


class Search:
    def __init__(self, seed):
        self.source = random.Random(seed)
        self.tried = []

    def trial(self):
        width = self.source.choice([128, 160, 192])
        model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 64))
        rate = 10 ** self.source.uniform(-4, -2)
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        for _ in range(ROUND):
            x = torch.randn(512, 64)
            loss = functional.mse_loss(model(x), x.flip(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        self.tried.append({"score": loss.item(), "model": model, "rate": rate})
        self.tried = [self.best()]

    def best(self):
        return min(self.tried, key=lambda one: one["score"])


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    search = Search(0)
    for number in range(1, STEPS // ROUND + 1):
        search.trial()
        print(f"step {number * ROUND}: best {search.best()['score']:.4f}")


if __name__ == "__main__":
    main()
