"""Two other threads run backward passes, while this one is looked at."""

import threading
from time import sleep

import torch
from forced import ROUNDS, checksum, look, run
from torch import nn


def train(kept: list[torch.Tensor]) -> None:
    generator = torch.Generator().manual_seed(0)
    net = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(10)))
    for parameter in net.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator)
    for _ in range(ROUNDS * 5):
        net.zero_grad()
        loss = net(torch.randn(4, 8, generator=generator)).exp().sum()
        gradients = torch.autograd.grad(loss, list(net.parameters()), create_graph=True)
        penalty = sum(one.pow(2).sum() for one in gradients)
        (loss + penalty).backward()
        kept += [loss, *(one.grad for one in net.parameters())]


def main() -> str:
    kept: list[list[torch.Tensor]] = [[], []]
    threads = [threading.Thread(target=train, args=(one,)) for one in kept]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        look()
        sleep(0.0005)
    return checksum(*kept[0], *kept[1])


if __name__ == "__main__":
    run(main)
