"""Trains a tagger on documents of very different lengths; a batch is as long as its longest."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "500"))
WIDTH = 288


class Documents:
    """Most are short, few are long, and now and then one is longer than all before."""

    def __init__(self):
        self.source = torch.Generator().manual_seed(26)
        self.lengths = torch.Generator().manual_seed(252)
        first = torch.randn(27_000, WIDTH, generator=self.source)
        self.mean, self.spread = first.mean(0), first.std(0)

    def batch(self, count=4):
        tail = torch.rand(count, generator=self.lengths).clamp(min=1e-4) ** -0.6
        longest = int((60 * tail).clamp(max=3000).max())
        words = torch.randn(count, longest, WIDTH, generator=self.source)
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
