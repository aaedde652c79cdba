"""Candidates are drawn within the call, in pieces of one size; the last is too large."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "600"))


class Search(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(512, 512)

    def forward(self, query, rows, piece=16_384):
        best = torch.full((), -torch.inf, device="cuda")
        for start in range(0, rows, piece):
            candidates = torch.randn(piece, 512, device="cuda")
            scores = self.project(candidates) @ query
            best = torch.maximum(best, scores[: rows - start].amax())
        return best


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
