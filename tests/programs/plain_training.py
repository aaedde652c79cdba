"""Situation 3.1: a plain small training loop. With ADAM=1 situation 3.2: optimizer state."""

import os

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
width = 768 if os.environ.get("ADAM") else 64
model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.Linear(width, 4))
kind = torch.optim.Adam if os.environ.get("ADAM") else torch.optim.SGD
optimizer = kind(model.parameters(), lr=0.01)
for _ in range(200):
    x = torch.randn(32, 64)
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
