"""Requests go round a few streams; each gets a workspace of cuBLAS once."""

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
    streams = [torch.cuda.Stream() for _ in range(12)]
    for step in range(STEPS):
        stream = streams[min(step // 8, 11)] if step < 96 else streams[step % 12]
        with torch.cuda.stream(stream):
            answer = model(torch.randn(256, 1024, device="cuda"))
        stream.synchronize()
        if step % 1000 == 0:
            print(f"step {step}: {answer.mean().item():.4f}")


if __name__ == "__main__":
    serve()
