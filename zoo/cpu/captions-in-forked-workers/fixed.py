"""Trains on captions that are cut out of one long array of bytes by two forked loader workers."""

import os
from array import array

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
        text, ends = bytearray(), array("q", [0])
        for number in range(count):
            text += f"caption {number}: {number * 7919 % 10007}".encode()
            ends.append(len(text))
        self.text = torch.frombuffer(text, dtype=torch.uint8)
        self.ends = torch.frombuffer(ends, dtype=torch.int64)

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        first = index * NEIGHBOURS
        ends = self.ends[first : first + NEIGHBOURS + 1]
        lengths = (ends[1:] - ends[:-1]).float()
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
