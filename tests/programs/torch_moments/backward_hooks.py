"""Hooks of a backward pass: of tensors, of nodes, of modules, after a gradient was added."""

import torch
from forced import ROUNDS, checksum, look, run
from torch import nn


def main() -> str:
    torch.manual_seed(0)
    net = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(3)))
    optimizers = {one: torch.optim.SGD([one], lr=0.01) for one in net.parameters()}
    kept = []

    def step(parameter: torch.Tensor) -> None:
        look()
        optimizers[parameter].step()
        parameter.grad = None
        look()

    for layer in net:
        layer.register_full_backward_hook(lambda *_: look())
        layer.register_full_backward_pre_hook(lambda *_: look())
    for parameter in net.parameters():
        parameter.register_hook(lambda gradient: look())
        parameter.register_post_accumulate_grad_hook(step)
    for _ in range(ROUNDS):
        inputs = torch.randn(4, 8, requires_grad=True)
        hidden = net(inputs)
        hidden.register_hook(lambda gradient: look() or gradient * 2)
        loss = hidden.pow(2).sum()
        loss.grad_fn.register_hook(lambda *_: look())
        loss.grad_fn.register_prehook(lambda *_: look())
        loss.backward()
        kept += [loss, inputs.grad]
    return checksum(*kept, *net.parameters())


if __name__ == "__main__":
    run(main)
