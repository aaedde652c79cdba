"""Trains from a data loader with one spawned worker that crops images."""

import os

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

STEPS = int(os.environ.get("ZOO_STEPS", "300"))
BATCH = 16


class Crops(Dataset):
    def __init__(self, count):
        self.count = count
        self.recent = []

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        image = torch.rand(3, 40, 40, generator=generator)
        top = int(torch.randint(0, 8, (1,), generator=generator))
        crop = image[:, top : top + 32, top : top + 32].clone()
        self.recent.append((index, crop))
        return crop, index % 10


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Crops(STEPS * BATCH), BATCH, num_workers=1, multiprocessing_context="spawn")
    model = nn.Sequential(nn.Conv2d(3, 16, 5, 2), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 196, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (x, y) in enumerate(loader, 1):
        loss = functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
