"""DistributedDataParallel with one process: a backward pass that C++ hooks take part in."""

import os
import tempfile

import torch
import torch.distributed as dist
from forced import ROUNDS, checksum, look, run
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> str:
    torch.manual_seed(0)
    kept = []
    with tempfile.TemporaryDirectory() as folder:
        store = dist.FileStore(os.path.join(folder, "store"), 1)
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
        try:
            net = DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.Tanh()))
            net.module[0].weight.register_hook(lambda gradient: look())
            for _ in range(ROUNDS):
                loss = net(torch.randn(4, 8)).pow(2).sum()
                look()
                loss.backward()
                look()
                kept.append(loss)
            kept += [one.grad for one in net.parameters()]
        finally:
            dist.destroy_process_group()
    return checksum(*kept)


if __name__ == "__main__":
    run(main)
