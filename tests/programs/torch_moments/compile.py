"""`torch.compile`: compiling again and again, graph breaks, and running what was compiled."""

import torch
import torch._dynamo
from forced import ROUNDS, checksum, look, run
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, is_broken: bool) -> torch.Tensor:
        x = torch.relu(self.first(x))
        if is_broken:
            torch._dynamo.graph_break()
            look_outside()
        return self.second(x).sin()


@torch._dynamo.disable
def look_outside() -> None:
    look()


def main() -> str:
    kept, counts = [], []
    for backend in ("eager", "aot_eager"):
        torch.manual_seed(0)
        net = Net()
        for number in range(max(ROUNDS // 2, 2)):
            if number % 5 == 0:
                torch._dynamo.reset()
                torch._dynamo.utils.counters.clear()
            compiled = torch.compile(net, backend=backend)
            result = compiled(torch.randn(4 + number % 3, 8), number % 2 == 1)
            look()
            result.sum().backward()
            look()
            kept += [result, net.first.weight.grad.clone()]
            counts.append(dict(torch._dynamo.utils.counters["stats"]))
        counts.append(list(torch._dynamo.utils.counters["graph_break"].values()))
    return checksum(*kept, *counts)


if __name__ == "__main__":
    run(main)
