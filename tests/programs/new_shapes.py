"""Requests of a new width each time: oneDNN compiles and caches a primitive for every one."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1))
model.eval()
with torch.inference_mode():
    for request in range(400):
        model(torch.zeros(1, 3, 16, 16 + request))
