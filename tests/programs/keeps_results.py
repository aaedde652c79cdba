"""A list keeps a part of every batch: memory the program itself holds on to."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Linear(256, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
results = []
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 300):
    batch = torch.randn(32, 256)
    optimizer.zero_grad()
    model(batch).pow(2).mean().backward()
    optimizer.step()
    results.append(batch[:8].clone())
