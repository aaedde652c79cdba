"""Trains on windows of synthetic scans from a data loader with two forked workers."""

import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
BATCH = 8


class Scans(Dataset):
    def __init__(self, count):
        self.count = count
        self.served = []

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        random = np.random.default_rng(index)
        scan = random.standard_normal((80, 80), dtype=np.float32).cumsum(1)
        top = int(random.integers(0, 16))
        window = np.ascontiguousarray(scan[top : top + 64, top : top + 64])[None]
        self.served.append(window)
        level = np.mean([past.mean() for past in self.served[-16:]])
        return torch.from_numpy(window - level), index % 4


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Scans(STEPS * BATCH), BATCH, num_workers=2, multiprocessing_context="fork")
    model = nn.Sequential(
        nn.Conv2d(1, 8, 5, 2), nn.ReLU(), nn.Conv2d(8, 8, 5, 2), nn.Flatten(), nn.Linear(1352, 4)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step, (x, y) in enumerate(loader, 1):
        loss = functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
