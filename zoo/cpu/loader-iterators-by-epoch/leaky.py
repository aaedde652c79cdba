"""Trains on short epochs, each a few batches of a newly shuffled loader."""

import os

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

STEPS = int(os.environ.get("ZOO_STEPS", "300"))
EPOCH = 4
ROWS = 1500


class Epochs:
    def __init__(self, loader):
        self.loader = loader
        self.streams = {}

    def start(self, epoch):
        self.streams[epoch] = iter(self.loader)
        return self.streams[epoch]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(ROWS, 32)
    loader = DataLoader(TensorDataset(x, x.sum(1)), 64, shuffle=True)
    model = nn.Sequential(nn.Linear(32, 512), nn.ReLU(), nn.Linear(512, 512), nn.Linear(512, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    epochs = Epochs(loader)
    for epoch in range(STEPS // EPOCH):
        stream = epochs.start(epoch)
        for _ in range(EPOCH):
            inputs, targets = next(stream)
            loss = functional.mse_loss(model(inputs)[:, 0], targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 10 == 0:
            print(f"epoch {epoch}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
