"""Situation 0.2: a big extra product each step, only ever rebound."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(150):
    x = torch.randn(32, 64)
    extra = torch.randn(1024, 1024) @ torch.randn(1024, 64) @ torch.randn(64, 1024)
    loss = model(x).pow(2).mean() + 0 * extra.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
