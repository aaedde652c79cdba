"""Trains from a memory-mapped array and reads each row once: its pages stay mapped."""

import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "300"))
ROWS = 32
SHAPE = (ROWS * STEPS, 3, 32, 32)


def open_data(path):
    return np.load(path, mmap_mode="r")


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "train.npy")
        out = np.lib.format.open_memmap(path, "w+", np.float32, SHAPE)
        for first in range(0, len(out), 512):
            out[first : first + 512] = 0.5
        out.flush()
        del out
        train(path)


def train(path):
    data = open_data(path)
    model = nn.Sequential(nn.Conv2d(3, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 8, 5, 2), nn.Flatten())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(STEPS):
        x = torch.from_numpy(np.array(data[ROWS * step : ROWS * (step + 1)]))
        x += torch.randn_like(x)
        loss = functional.mse_loss(model(x), torch.zeros(ROWS, 8 * 25))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
