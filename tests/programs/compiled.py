"""Compiles a model in each way and prints what the compiler did."""

import logging

import torch
import torch._dynamo
from torch import nn
from torch._dynamo.utils import counters

CALLS = 60


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 4)))

    def forward(self, x):
        return x + self.layers(x)


def whole(model):
    return torch.compile(model, backend="eager")


def in_place(model):
    model.compile(backend="eager", fullgraph=True)
    return model


def in_function(model):
    return torch.compile(lambda x: model(x) * 2, backend="eager", fullgraph=True)


def broken(model):
    def call(x):
        y = model(x)
        print(end="")  # a graph break between two calls
        return model(y)

    return torch.compile(call, backend="eager")


for way in (whole, in_place, in_function, broken):
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)
    call = way(nn.Sequential(Block(), Block()))
    with torch.no_grad():
        results = [call(torch.ones(2, 4)).sum().item().hex() for _ in range(CALLS)]
    told = {
        name: dict(counters[name]) for name in ("stats", "frames", "graph_break", "unimplemented")
    }
    print(way.__name__, set(results), told)


def train():
    """An optimizer whose step is compiled: hooks break its graph, and must change nothing else."""
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)
    model = Block()
    optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.01))

    @torch.compile(backend="eager")
    def step(x):
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(torch.ones(2, 4) * number).item().hex() for number in range(20)]
    print("train", losses, dict(counters["stats"]))


logging.disable(logging.WARNING)  # torch's own, which names the process and the time
train()
