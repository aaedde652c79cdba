"""The same service, corrected: answers are detached, and still collected."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "600"))


def build():
    torch.manual_seed(0)
    layers = [nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(2048, 512)).cuda()


def serve():
    model = build().eval()
    answers = []
    for request in range(STEPS):
        batch = torch.randn(256, 1024, device="cuda")
        answer = model(batch).detach()
        answers.append(answer)
        if request % 100 == 0:
            print(f"request {request}: {answer.mean().item():.4f}")


if __name__ == "__main__":
    serve()
