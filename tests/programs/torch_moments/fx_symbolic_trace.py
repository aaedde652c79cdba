"""`torch.fx.symbolic_trace`, looked at from inside what is traced."""

import torch
from forced import ROUNDS, checksum, look, run
from torch import fx, nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.scale = nn.Parameter(torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(x) * self.scale
        look()
        return torch.relu(x) + self.layer.weight.sum()


def main() -> str:
    torch.manual_seed(0)
    net, kept, texts = Net(), [], []
    for _ in range(ROUNDS):
        traced = fx.symbolic_trace(net)
        kept.append(traced(torch.randn(4, 8)))
        texts.append(str(traced.graph))
        look()
    return checksum(*kept, *texts)


if __name__ == "__main__":
    run(main)
