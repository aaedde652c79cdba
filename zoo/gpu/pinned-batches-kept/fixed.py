"""Batches are put into one pinned buffer for the copy to the device."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "400"))


def build():
    torch.manual_seed(0)
    layers = [nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(2048, 512)).cuda()


@torch.no_grad()
def serve():
    model = build().eval()
    batch = torch.empty(256, 1024).pin_memory()
    for step in range(STEPS):
        batch.normal_()
        answer = model(batch.to("cuda"))
        if step % 100 == 0:
            print(f"step {step}: {answer.mean().item():.4f}")


if __name__ == "__main__":
    serve()
