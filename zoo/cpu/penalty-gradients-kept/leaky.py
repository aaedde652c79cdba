"""Trains a critic with a penalty on its gradient and notes the gradients it saw."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


class Penalty:
    def __init__(self, target=1.0):
        self.target = target
        self.slopes = []

    def __call__(self, critic, x):
        (slope,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
        self.slopes.append(slope)
        return (slope.norm(dim=1) - self.target).pow(2).mean()

    def steepest(self, last=20):
        return max(slope.norm(dim=1).max().item() for slope in self.slopes[-last:])


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    critic = nn.Sequential(nn.Linear(32, 128), nn.Tanh(), nn.Linear(128, 1))
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.02)
    penalty = Penalty()
    for step in range(1, STEPS + 1):
        real, made = torch.randn(32, 32) + 1, torch.randn(32, 32)
        x = (real + made).div(2).requires_grad_()
        loss = critic(made).mean() - critic(real).mean() + penalty(critic, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}, steepest {penalty.steepest():.2f}")


if __name__ == "__main__":
    main()
