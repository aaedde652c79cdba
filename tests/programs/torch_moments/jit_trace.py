"""`torch.jit.trace` in a loop, looked at from inside the traced module."""

import torch
from forced import ROUNDS, checksum, graph_text, look, run
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x)).reshape(x.shape[0], -1)
            look()
        return x


def main() -> str:
    torch.manual_seed(0)
    net, kept, texts = Net(), [], []
    for _ in range(ROUNDS):
        inputs = torch.randn(4, 8)
        traced = torch.jit.trace(net, inputs, check_trace=False)
        loss = traced(inputs).sum()
        loss.backward()
        look()
        kept.append(loss)
        texts.append(graph_text(traced.inlined_graph))
    return checksum(*kept, *texts, *(one.grad for one in net.parameters()))


if __name__ == "__main__":
    run(main)
