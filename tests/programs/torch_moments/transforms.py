"""The transforms of `torch.func`, alone and inside each other, looked at from inside."""

import torch
import torch._dynamo
from forced import ROUNDS, checksum, look, run
from torch.func import functionalize, grad, hessian, jacrev, jvp, vjp, vmap


def function(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x) * x
    look()
    z = (y * 2).exp()
    look()
    return z.sum()


def edited(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y[0].add_(1)
    look()
    y.mul_(x)
    look()
    return y


def main() -> str:
    torch.manual_seed(0)
    kept = []
    for _ in range(ROUNDS):
        x = torch.randn(3, 4)
        weight = torch.randn(4, requires_grad=True)
        kept += [vmap(function)(x), grad(function)(x), vmap(grad(function))(x)]
        kept += jvp(function, (x,), (torch.ones_like(x),))
        result, back = vjp(function, x)
        look()
        kept += [result, *back(torch.ones_like(result))]
        kept += [jacrev(function)(x), hessian(function)(x[0]), functionalize(edited)(x)]
        kept += [vmap(lambda row, by: function(row * by), (0, None))(x, weight)]
    return checksum(*kept)


if __name__ == "__main__":
    run(main)
