"""Code that torch.compile runs, interrupted by looks as a signal handler interrupts it."""

import signal

import torch
import torch._dynamo
from forced import ROUNDS, checksum, look, run
from torch import nn


def train(net: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    hidden = torch.relu(net(inputs))
    signal.raise_signal(signal.SIGUSR1)
    loss = hidden.exp().sum()
    signal.raise_signal(signal.SIGUSR1)
    return loss.sin()


def main() -> str:
    torch.manual_seed(0)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    before = signal.signal(signal.SIGUSR1, lambda number, frame: look())
    net, kept = nn.Linear(8, 8), []
    compiled = torch.compile(train, backend="eager")
    try:
        for _ in range(ROUNDS):
            kept.append(compiled(net, torch.randn(4, 8)))
            kept[-1].backward()
    finally:
        signal.signal(signal.SIGUSR1, before)
    return checksum(*kept, net.weight.grad, dict(torch._dynamo.utils.counters["stats"]))


if __name__ == "__main__":
    run(main)
