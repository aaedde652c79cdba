"""Requests have one stream, and cuBLAS one workspace."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "6000"))


def build():
    torch.manual_seed(0)
    layers = [nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(2048, 512)).cuda()


@torch.no_grad()
def serve():
    model = build().eval()
    stream = torch.cuda.Stream()
    for step in range(STEPS):
        with torch.cuda.stream(stream):
            answer = model(torch.randn(256, 1024, device="cuda"))
        stream.synchronize()
        if step % 1000 == 0:
            print(f"step {step}: {answer.mean().item():.4f}")


if __name__ == "__main__":
    serve()
