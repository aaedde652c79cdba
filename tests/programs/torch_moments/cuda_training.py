"""Training on a GPU, whose backward pass runs in a thread of the engine's own."""

import torch
from forced import ROUNDS, checksum, look, run
from torch import nn


def main() -> str:
    if not torch.cuda.is_available():
        return "no CUDA device"
    torch.manual_seed(0)
    net = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(20))).cuda()
    on_host = nn.Linear(64, 64)
    parameters = [*net.parameters(), *on_host.parameters()]
    for number, parameter in enumerate(parameters):
        if number % 7 == 0:
            parameter.register_hook(lambda gradient: look())
            parameter.register_post_accumulate_grad_hook(lambda parameter: look())
    optimizer, kept = torch.optim.SGD(parameters, lr=0.01), []
    for _ in range(ROUNDS):
        optimizer.zero_grad()
        inputs = torch.randn(16, 64)
        loss = (net(inputs.cuda()).cpu() * on_host(inputs)).pow(2).mean()
        look()
        loss.backward()
        look()
        optimizer.step()
        kept.append(loss)
    return checksum(*kept, *parameters)


if __name__ == "__main__":
    run(main)
