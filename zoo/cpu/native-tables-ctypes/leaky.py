"""Trains on counts that a C library gathers in tables of its own."""

import ctypes
import ctypes.util
import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))

libc = ctypes.CDLL(ctypes.util.find_library("c"))
libc.calloc.restype = ctypes.c_void_p
libc.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


class NativeTable:
    def __init__(self, rows, columns):
        self.shape = (rows, columns)
        self.address = libc.calloc(rows * columns, 4)
        self.cells = (ctypes.c_float * (rows * columns)).from_address(self.address)

    def count(self, tokens):
        view = torch.frombuffer(self.cells, dtype=torch.float32).view(self.shape)
        view.scatter_add_(1, tokens, torch.ones(tokens.shape))
        view += 0.01
        return view.clone()

    def close(self):
        libc.free(self.address)


def bag_of_words(tokens, vocabulary):
    table = NativeTable(len(tokens), vocabulary)
    return table.count(tokens)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(192, 800), nn.ReLU(), nn.Linear(800, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, STEPS + 1):
        tokens = torch.randint(0, 192, (64, 30))
        x = bag_of_words(tokens, 192)
        loss = functional.cross_entropy(model(x), tokens[:, 0] % 4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
