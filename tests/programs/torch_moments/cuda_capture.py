"""A CUDA graph: looked at while it is captured, and while it is replayed."""

import torch
from forced import ROUNDS, checksum, look, run
from torch import nn


def main() -> str:
    if not torch.cuda.is_available():
        return "no CUDA device"
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    static = torch.randn(16, 64, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            net(static).pow(2).mean().backward()
            optimizer.zero_grad()
    torch.cuda.current_stream().wait_stream(side)
    graph, kept = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        look()
        hidden = net(static)
        look()
        loss = hidden.pow(2).mean()
        loss.backward()
        look()
        optimizer.step()
        look()
    for _ in range(ROUNDS):
        static.copy_(torch.randn(16, 64))
        graph.replay()
        look()
        kept.append(loss.clone())
        look()
    return checksum(*kept, *net.parameters())


if __name__ == "__main__":
    run(main)
