"""MAML on sine waves: adapt to a task in an inner loop, then step the shared start."""

import os

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "250"))


def sample_task():
    amplitude, phase = 0.1 + 4.9 * torch.rand(1), 3.1 * torch.rand(1)
    x = 10 * torch.rand(40, 1) - 5
    return x, amplitude * torch.sin(x + phase)


class Maml:
    def __init__(self, inner_lr=0.02, inner_steps=5):
        self.net = nn.Sequential(
            nn.Linear(1, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
        )
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.inner_lr = inner_lr
        self.inner_steps = inner_steps
        self.adapted = {}

    def adapt(self, x, y):
        weights = dict(self.net.named_parameters())
        for _ in range(self.inner_steps):
            loss = functional.mse_loss(functional_call(self.net, weights, (x,)), y)
            grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
            weights = {
                name: weight - self.inner_lr * grad
                for (name, weight), grad in zip(weights.items(), grads, strict=True)
            }
        return weights

    def meta_step(self, task_id):
        x, y = sample_task()
        weights = self.adapt(x[:20], y[:20])
        self.adapted[task_id] = weights
        loss = functional.mse_loss(functional_call(self.net, weights, (x[20:],)), y[20:])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    maml = Maml()
    for step in range(1, STEPS + 1):
        loss = maml.meta_step(f"task-{step}")
        if step % 50 == 0:
            print(f"step {step}: meta loss {loss:.3f}")


if __name__ == "__main__":
    main()
