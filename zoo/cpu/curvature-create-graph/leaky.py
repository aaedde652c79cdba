"""Looks for a flat start: random networks are compared by the curvature of their loss."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


def candidate(width=96):
    return nn.Sequential(nn.Linear(32, width), nn.Tanh(), nn.Linear(width, 8))


def curvature(model, x, y, probes=4):
    weights = list(model.parameters())
    loss = functional.mse_loss(model(x), y)
    loss.backward(create_graph=True)
    trace = 0.0
    for _ in range(probes):
        signs = [torch.randint_like(weight, 2) * 2 - 1 for weight in weights]
        product = sum((w.grad * sign).sum() for w, sign in zip(weights, signs, strict=True))
        second = torch.autograd.grad(product, weights, retain_graph=True)
        trace += sum((s * sign).sum().item() for s, sign in zip(second, signs, strict=True))
    return trace / probes


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    best = float("inf")
    for step in range(1, STEPS + 1):
        x = torch.randn(64, 32)
        model = candidate()
        best = min(best, curvature(model, x, x[:, :8].sin()))
        if step % 10 == 0:
            print(f"candidate {step}: best curvature {best:.4f}")


if __name__ == "__main__":
    main()
