"""Forward-mode differentiation with dual tensors."""

import torch
from forced import ROUNDS, checksum, look, run
from torch.autograd import forward_ad


def main() -> str:
    torch.manual_seed(0)
    kept = []
    weight = torch.randn(4, 4, requires_grad=True)
    for _ in range(ROUNDS):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(torch.randn(4, 4), torch.randn(4, 4))
            look()
            result = torch.tanh(dual @ weight)
            view = result[1:]
            look()
            value, tangent = forward_ad.unpack_dual(view)
            kept += [value, tangent]
            tangent.sum().backward()
            look()
    return checksum(*kept, weight.grad)


if __name__ == "__main__":
    run(main)
