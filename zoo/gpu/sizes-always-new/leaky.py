"""Candidates are drawn within the call, and no two calls want the same size."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "600"))


class Search(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(512, 512)

    def forward(self, query, rows):
        candidates = torch.randn(rows, 512, device="cuda")
        return (self.project(candidates) @ query).amax()


@torch.no_grad()
def serve():
    torch.manual_seed(0)
    search = Search().cuda().eval()
    query = torch.randn(512, device="cuda")
    for step in range(STEPS):
        best = search(query, 60_000 + 110 * step).item()
        if step % 100 == 0:
            print(f"step {step}: {best:.3f}")


if __name__ == "__main__":
    serve()
