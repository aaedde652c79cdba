"""Two ranks with gloo, a worker each: for torchrun."""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

STEPS = 30


class Numbers(Dataset):
    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.ones(4) * index


if __name__ == "__main__":
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for batch in DataLoader(Numbers(), num_workers=1):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
    os.write(
        1, f"rank-{dist.get_rank()} {os.getpid()}\n".encode()
    )  # one write: ranks share the pipe
    dist.destroy_process_group()
