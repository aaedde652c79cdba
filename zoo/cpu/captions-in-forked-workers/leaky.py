"""Trains on captions that are read from a long list by two forked loader workers."""

import os

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

STEPS = int(os.environ.get("ZOO_STEPS", "240"))
BATCH = 8
NEIGHBOURS = 320


class Captions(Dataset):
    def __init__(self, count):
        self.count = count
        self.captions = [f"caption {number}: {number * 7919 % 10007}" for number in range(count)]

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        first = index * NEIGHBOURS
        near = self.captions[first : first + NEIGHBOURS]
        lengths = torch.tensor([len(caption) for caption in near], dtype=torch.float32)
        return lengths, lengths.mean()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    captions = Captions(STEPS * BATCH * NEIGHBOURS)
    loader = DataLoader(captions, BATCH, num_workers=2, multiprocessing_context="fork")
    model = nn.Sequential(nn.Linear(NEIGHBOURS, 512), nn.ReLU(), nn.Linear(512, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    for step, (x, y) in enumerate(loader, 1):
        loss = functional.mse_loss(model(x)[:, 0], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
