"""Trains for several epochs; each has a new data loader, in this process."""

import os

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

STEPS = int(os.environ.get("ZOO_STEPS", "360"))
EPOCHS = 6
WORKERS = 0


class Noise(Dataset):
    def __len__(self):
        return 16 * STEPS // EPOCHS

    def __getitem__(self, index):
        return torch.rand(3, 32, 32), index % 10


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(3, 64, 5, 2), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 196, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(EPOCHS):
        loader = DataLoader(Noise(), 16, shuffle=True, num_workers=WORKERS)
        for x, y in loader:
            loss = functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
