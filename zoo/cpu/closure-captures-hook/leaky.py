"""Trains a small classifier and measures how alike the features of two batches are."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


def watch_features(layer):
    captured = []

    def hook(module, inputs, output):
        captured.append(output.detach())

    layer.register_forward_hook(hook)

    def similarity():
        if len(captured) < 2:
            return 0.0
        one, two = captured[-2].mean(0), captured[-1].mean(0)
        return functional.cosine_similarity(one, two, dim=0).item()

    return similarity


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(128, 768), nn.ReLU(), nn.Linear(768, 256), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    similarity = watch_features(model[2])
    for step in range(1, STEPS + 1):
        x, y = torch.randn(64, 128), torch.randint(0, 10, (64,))
        loss = functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}, alike {similarity():.3f}")


if __name__ == "__main__":
    main()
