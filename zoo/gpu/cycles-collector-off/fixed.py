"""A request has its result, and nothing refers back: no cycle, no need for a collector."""

import gc
import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "500"))


def build():
    torch.manual_seed(0)
    layers = [nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(2048, 512)).cuda()


class Request:
    def __init__(self, batch):
        self.batch = batch
        self.result = None


class Result:
    def __init__(self, scores):
        self.scores = scores


@torch.no_grad()
def serve():
    gc.disable()
    model = build().eval()
    for step in range(STEPS):
        request = Request(torch.randn(256, 1024, device="cuda"))
        request.result = Result(model(request.batch))
        if step % 100 == 0:
            print(f"request {step}: {request.result.scores.mean().item():.4f}")


if __name__ == "__main__":
    serve()
