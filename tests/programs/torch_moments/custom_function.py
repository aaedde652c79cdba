"""Custom autograd Functions, looked at from their forward and backward, differentiated twice."""

from typing import Any

import torch
from forced import ROUNDS, checksum, look, run


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        ctx.beside = [x.detach() * 2]
        look()
        return x**3

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        look()
        (x,) = ctx.saved_tensors
        result = 3 * gradient * Square.apply(x)
        look()
        return result


class Square(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        look()
        return x**2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        look()
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        look()
        return 2 * gradient * ctx.saved_tensors[0]


def main() -> str:
    torch.manual_seed(0)
    kept = []
    for _ in range(ROUNDS):
        x = torch.randn(8, requires_grad=True)
        (first,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
        look()
        (second,) = torch.autograd.grad(first.pow(2).sum(), x, create_graph=True)
        look()
        (first * second).sum().backward()
        kept += [first, second, x.grad]
    return checksum(*kept)


if __name__ == "__main__":
    run(main)
