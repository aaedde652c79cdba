"""Trains from batches that a thread prepares ahead."""

import os
import queue
import threading

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


class Prefetcher:
    def __init__(self, count, ahead=1):
        self.ready = queue.Queue(maxsize=ahead)
        self.count = count
        threading.Thread(target=self.produce, daemon=True).start()

    def produce(self):
        generator = torch.Generator().manual_seed(0)
        for _ in range(self.count):
            y = torch.randint(0, 10, (64,), generator=generator)
            x = torch.rand(64, 3, 32, 32, generator=generator) + 0.1 * y[:, None, None, None]
            self.ready.put((x, y))
        self.ready.put(None)

    def __iter__(self):
        return iter(self.ready.get, None)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(3, 12, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(1200, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (x, y) in enumerate(Prefetcher(STEPS), 1):
        loss = functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
