"""A loader with eight workers, each item some array work: watching eight processes beside one."""

import sys

import numpy as np
import torch
from in_turns import run_in_turns
from torch.utils.data import DataLoader, Dataset

WORKERS = int(sys.argv[1]) if len(sys.argv) > 1 else 8


class Clips(Dataset):
    def __len__(self):
        return 1 << 40

    def __getitem__(self, index):
        sound = np.random.default_rng(index).standard_normal(16_384)
        return torch.from_numpy(np.abs(np.fft.rfft(sound)).astype(np.float32))


class InOrder(torch.utils.data.Sampler):
    def __iter__(self):
        index = 0
        while True:
            yield index
            index += 1


torch.set_num_threads(1)
batches = iter(
    DataLoader(Clips(), batch_size=8, sampler=InOrder(), num_workers=WORKERS, prefetch_factor=2)
)


def step():
    next(batches)


run_in_turns(step)
