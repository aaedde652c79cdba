"""`torch.export.export`, looked at from a module hook and by what is left of it."""

import torch
import torch._dynamo
from forced import ROUNDS, checksum, look, run
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x)) * x.shape[0]


def main() -> str:
    torch.manual_seed(0)
    net, kept, texts = Net(), [], []
    batch = torch.export.Dim("batch", min=2, max=64)
    for number in range(max(ROUNDS // 4, 2)):
        inputs = torch.randn(4 + number, 8)
        program = torch.export.export(net, (inputs,), dynamic_shapes=({0: batch},), strict=False)
        look()
        texts.append(str(program.graph))
        kept.append(program.module()(inputs))
    return checksum(*kept, *texts)


if __name__ == "__main__":
    run(main)
