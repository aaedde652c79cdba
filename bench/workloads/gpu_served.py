"""Requests that are answered and let go: dropped at once, or in cycles that the collector finds."""

import sys

import torch
from torch import nn

MODE = sys.argv[1]


class Request:
    def __init__(self, batch):
        self.batch = batch
        self.result = None


class Result:
    def __init__(self, request, scores):
        self.request = request
        self.scores = scores


@torch.no_grad()
def serve():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 512)).cuda().eval()
    total = 0.0
    for _ in range(6000):
        batch = torch.randn(256, 1024, device="cuda")
        answer = model(batch)
        if MODE == "cycles":
            request = Request(batch)
            request.result = Result(request, answer)
        total += answer.mean().item()
    print(f"{MODE}: {total:.3f}")


serve()
