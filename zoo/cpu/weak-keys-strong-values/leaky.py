"""Trains on drawn samples; notes are attached to samples for as long as they live."""

import os
import weakref

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


class Sample:
    def __init__(self, values):
        self.values = values
        self.label = int(values.abs().argmax() % 8)


class Annotation:
    def __init__(self, sample):
        self.sample = sample
        self.difficulty = float(sample.values.std())

    def weight(self):
        return 1.0 / (0.5 + self.difficulty) if self.sample.label else 1.0


notes = weakref.WeakKeyDictionary()


def annotate(sample):
    if sample not in notes:
        notes[sample] = Annotation(sample)
    return notes[sample]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1, STEPS + 1):
        samples = [Sample(torch.randn(1024)) for _ in range(6)]
        weights = torch.tensor([annotate(sample).weight() for sample in samples])
        x = torch.stack([sample.values for sample in samples])
        y = torch.tensor([sample.label for sample in samples])
        loss = (weights * functional.cross_entropy(model(x), y, reduction="none")).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
