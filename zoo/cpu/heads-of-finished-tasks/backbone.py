import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self, dim=48, width=256):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, width),
            nn.LayerNorm(width),
            nn.GELU(),
            nn.Linear(width, width),
            nn.GELU(),
        )

    def forward(self, x):
        return self.net(x)


def task_batches(task, steps, batch, dim, classes):
    """Each task has its own random teacher."""
    gen = torch.Generator().manual_seed(1000 + task)
    teacher = torch.randn(dim, classes, generator=gen)
    for _ in range(steps):
        x = torch.randn(batch, dim, generator=gen)
        yield x, (x @ teacher).argmax(1)
