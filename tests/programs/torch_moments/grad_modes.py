"""Grad modes, autocast, deterministic algorithms, anomaly detection, edits through views."""

import torch
from forced import ROUNDS, checksum, look, run
from torch import nn


def main() -> str:
    torch.manual_seed(0)
    net, kept = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8)), []
    torch.use_deterministic_algorithms(True)
    try:
        for number in range(ROUNDS):
            x = torch.randn(4, 8)
            with torch.no_grad():
                kept.append(net(x))
                view = kept[-1][1:3]
                look()
                view.add_(1)
            with torch.inference_mode():
                kept.append(net(x)[::2])
                look()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = net(x).float().pow(2).sum()
                look()
            with torch.autograd.set_detect_anomaly(number % 4 == 0, check_nan=True):
                loss = loss + net(x).sum()
                look()
                loss.backward()
            base = net(x) * 1
            one, other = base[:2], base[2:]
            one.mul_(2)
            look()
            base.add_(other.sum())
            look()
            (one.sum() * other.exp().sum() + base.sum()).backward()
            kept.append(base)
    finally:
        torch.use_deterministic_algorithms(False)
    return checksum(*(one.float() for one in kept), *(one.grad for one in net.parameters()))


if __name__ == "__main__":
    run(main)
