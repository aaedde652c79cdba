"""A CUDA graph is captured once, and replayed for every request."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "220"))


def build():
    torch.manual_seed(0)
    layers = [nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(2048, 512)).cuda()


class Engine:
    def __init__(self):
        self.model = build().eval()
        self.plan = None

    def run(self, batch):
        if self.plan is None:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                scores = self.model(batch).amax(1)
            self.plan = graph, scores
        graph, scores = self.plan
        graph.replay()
        return scores.sum().item()


@torch.no_grad()
def serve():
    engine = Engine()
    batch = torch.randn(256, 1024, device="cuda")
    for _ in range(3):
        engine.model(batch)
    for step in range(STEPS):
        total = engine.run(batch)
        if step % 50 == 0:
            print(f"step {step}: {total:.3f}")


if __name__ == "__main__":
    serve()
