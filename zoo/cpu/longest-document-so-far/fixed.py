"""Trains a tagger on documents that are cut off at 64 words; all batches are equally long."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "500"))
WIDTH = 288


class Documents:
    def __init__(self):
        self.source = torch.Generator().manual_seed(26)
        first = torch.randn(27_000, WIDTH, generator=self.source)
        self.mean, self.spread = first.mean(0), first.std(0)

    def batch(self, count=4):
        words = torch.randn(count, 64, WIDTH, generator=self.source)
        return (words - self.mean) / self.spread


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    documents = Documents()
    model = nn.Sequential(nn.Linear(WIDTH, 160), nn.ReLU(), nn.Linear(160, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(1, STEPS + 1):
        x = documents.batch()
        scores = model(x).flatten(0, 1)
        loss = functional.cross_entropy(scores, x.flatten(0, 1)[:, :8].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}, length {x.shape[1]}")


if __name__ == "__main__":
    main()
