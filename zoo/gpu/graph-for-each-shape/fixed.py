"""One CUDA graph is captured, for the largest of twelve sizes; the others are a part of it."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "6000"))


def build():
    torch.manual_seed(0)
    layers = [nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU()]
    return load_kernels(nn.Sequential(*layers, nn.Linear(2048, 512)).cuda())


@torch.no_grad()
def load_kernels(model):
    """Those of every size, before the first step: CUDA puts them into the host's memory."""
    for rows in range(64, 64 * 13, 64):
        batch = torch.zeros(rows, 1024, device="cuda")
        for layer in model:
            is_linear = isinstance(layer, nn.Linear)
            batch = (
                nn.functional.linear(batch, layer.weight, layer.bias) if is_linear else batch.relu()
            )
    return model


class Engine:
    def __init__(self, most_rows=64 * 12):
        self.model = build().eval()
        self.batch = torch.zeros(most_rows, 1024, device="cuda")
        for _ in range(2):
            self.model(self.batch)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.scores = self.model(self.batch).amax(1)

    def run(self, rows):
        self.batch[:rows].normal_()
        self.graph.replay()
        return self.scores[:rows].sum().item()


@torch.no_grad()
def serve():
    torch.manual_seed(0)
    engine = Engine()
    for step in range(STEPS):
        rows = 64 * (1 + (step // 12 if step < 144 else step) % 12)
        total = engine.run(rows)
        engine.model(torch.zeros(8, 1024, device="cuda"))
        if step % 1000 == 0:
            print(f"step {step}: {total:.3f}")


if __name__ == "__main__":
    serve()
