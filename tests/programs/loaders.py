"""Data loaders with every kind of worker, one after the other; a worker prints its pid once."""

import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

METHODS = {"fork": 2, "spawn": 1, "forkserver": 1}
BATCHES = 12


class Slow(Dataset):
    def __init__(self, method, count):
        self.method = method
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.03)
        if index < METHODS[self.method]:
            # One write: two workers share the pipe, and two pieces of a line may change places.
            os.write(1, f"{self.method}-{get_worker_info().id} {os.getpid()}\n".encode())
        return torch.zeros(1)


if __name__ == "__main__":
    total = 0
    for method in sys.argv[1:]:
        workers = METHODS[method]
        loader = DataLoader(
            Slow(method, BATCHES * workers), num_workers=workers, multiprocessing_context=method
        )
        total += sum(1 for _ in loader)
    print("main", os.getpid())
    print("batches", total)
