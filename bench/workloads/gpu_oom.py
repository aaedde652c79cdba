"""Keeps activations until the device has no more, and tells how it ended."""

import sys

import torch
from torch import nn


def collect():
    torch.cuda.set_per_process_memory_fraction(0.06)
    model = nn.Sequential(nn.Linear(2048, 4096), nn.ReLU(), nn.Linear(4096, 4096)).cuda()
    features = []
    with torch.no_grad():
        while True:
            features.append(model(torch.randn(1024, 2048, device="cuda")))


try:
    collect()
except torch.cuda.OutOfMemoryError as error:
    print(f"{type(error).__module__}.{type(error).__qualname__}: {error.args[0][:60]}")
    sys.exit(7)
