"""Hooks that pack and unpack saved tensors, and checkpointed forwards run again by them."""

import torch
import torch._dynamo
from forced import ROUNDS, checksum, look, run
from torch import nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

fired = {"pack": 0, "unpack": 0, "forward": 0}


def pack(tensor: torch.Tensor) -> tuple[str, torch.Tensor]:
    fired["pack"] += 1
    look()
    return "packed", tensor.detach().clone()


def unpack(packed: tuple[str, torch.Tensor]) -> torch.Tensor:
    fired["unpack"] += 1
    look()
    return packed[1]


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        fired["forward"] += 1
        x = torch.tanh(self.linear(x))
        look()
        return x


def main() -> str:
    torch.manual_seed(0)
    fired.update(pack=0, unpack=0, forward=0)
    layer, kept = Layer(), []
    for number in range(ROUNDS):
        inputs = torch.randn(4, 8, requires_grad=True)
        with saved_tensors_hooks(pack, unpack):
            hidden = layer(inputs) * layer(inputs).exp()
        with save_on_cpu():
            hidden = hidden * hidden
        for is_reentrant in (False, True):
            hidden = checkpoint(layer, hidden, use_reentrant=is_reentrant)
        look()
        loss = hidden.sum()
        loss.backward(retain_graph=number % 2 == 0)
        look()
        kept += [loss, inputs.grad]
    return checksum(*kept, layer.linear.weight.grad, fired)


if __name__ == "__main__":
    run(main)
