"""Trains a regressor; histograms are handed to a writer thread unless the run is dry."""

import os
import queue
import threading

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
DRY_RUN = os.environ.get("WRITE_SUMMARIES") is None


class SummaryWriter:
    def __init__(self, dry):
        self.pending = queue.Queue()
        self.written = 0
        self.dry = dry
        if not dry:
            threading.Thread(target=self.drain, daemon=True).start()

    def add_histogram(self, name, values):
        if not self.dry:
            self.pending.put((name, values))

    def drain(self):
        while True:
            _, values = self.pending.get()
            self.written += int(torch.histc(values, 20).sum())


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    writer = SummaryWriter(DRY_RUN)
    for step in range(1, STEPS + 1):
        x = torch.randn(1024, 64)
        loss = functional.mse_loss(model(x), x.roll(1, 1))
        optimizer.zero_grad()
        loss.backward()
        for number in (0, 2, 3):
            values = model[number].weight.grad.flatten().clone()
            writer.add_histogram(f"grad/{number}", values)
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
