"""Situation 2.1: bursts of temporaries; the allocator keeps what they leave behind."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
kept = []
for step in range(160):
    burst = [torch.full((64, 64), 0.1) for _ in range(6000 + 37 * (step % 7))]
    if step < 20:
        kept.append(torch.ones(4))
    total = sum(float(part[0, 0]) for part in burst[::500])
    del burst
    loss = model(torch.randn(8, 64)).pow(2).mean() + 0 * total
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
