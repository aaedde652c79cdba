"""Two other threads train, trace, compile and transform while this one is looked at."""

import threading

import torch
import torch._dynamo
from forced import ROUNDS, checksum, look, run
from torch import nn


def train(kept: list[torch.Tensor]) -> None:
    generator = torch.Generator().manual_seed(0)
    net = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(10)))
    for parameter in net.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator)
    for number in range(ROUNDS * 5):
        net.zero_grad()
        inputs = torch.randn(4, 8, generator=generator)
        loss = net(inputs).exp().sum()
        gradients = torch.autograd.grad(loss, list(net.parameters()), create_graph=True)
        penalty = sum(one.pow(2).sum() for one in gradients)
        (loss + penalty).backward()
        if number % 5 == 0:
            with torch.no_grad():
                kept.append(torch.jit.trace(net, inputs, check_trace=False)(inputs))
            kept.append(torch.func.vmap(torch.func.grad(lambda x: x.sin().sum()))(inputs))
        kept += [loss, *(one.grad for one in net.parameters())]


def main() -> str:
    kept: list[list[torch.Tensor]] = [[], []]
    threads = [threading.Thread(target=train, args=(one,)) for one in kept]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        look()
    return checksum(*kept[0], *kept[1])


if __name__ == "__main__":
    run(main)
