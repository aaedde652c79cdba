"""`torch.jit.script`: compiling in a loop, and running what was compiled."""

import torch
from forced import ROUNDS, checksum, graph_text, look, run
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
        for _ in range(n):
            x = torch.relu(self.layer(x))
        return x


def main() -> str:
    torch.manual_seed(0)
    net, kept = Net(), []
    net.layer.register_forward_hook(lambda *_: None)
    for _ in range(ROUNDS):
        scripted = torch.jit.script(Net())
        look()
        scripted.load_state_dict(net.state_dict())
        result = scripted(torch.randn(4, 8), 3)
        look()
        result.sum().backward()
        kept += [result, scripted.layer.weight.grad]
    return checksum(*kept, graph_text(scripted.graph))


if __name__ == "__main__":
    run(main)
