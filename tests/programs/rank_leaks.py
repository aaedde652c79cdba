"""Ranks with gloo that train; one of them keeps what the others drop, and one may die.

LEAKING_RANK keeps a tensor of 64 KiB a step, DYING_RANK is killed at DIES_AT in its first start;
the others ignore torchrun's request to end and go on to the last step.
"""

import os
import signal
import time

import torch
import torch.distributed as dist
from torch import nn

STEPS = int(os.environ.get("STEPS", "160"))
DIES_AT = 60
kept = []


def train(rank):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    is_first = os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0"
    is_dying = is_first and rank == int(os.environ.get("DYING_RANK", "-1"))
    is_leaking = rank == int(os.environ.get("LEAKING_RANK", "-1"))
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        model(torch.ones(16, 64)).sum().backward()
        optimizer.step()
        if is_leaking:
            kept.append(torch.zeros(64, 256))
        if is_dying and step == DIES_AT:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)  # 60 steps are to take longer than rows wait to be written


if __name__ == "__main__":
    if "DYING_RANK" in os.environ and "STUBBORN" in os.environ:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    rank = int(os.environ["RANK"])
    if "ALONE" not in os.environ:  # a group that lost a rank may fail to meet a second time
        dist.init_process_group("gloo")
    train(rank)
    os.write(1, f"rank-{rank} {os.getpid()}\n".encode())
    if "DYING_RANK" not in os.environ:
        dist.destroy_process_group()
    else:
        os._exit(0)
