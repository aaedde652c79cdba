"""Steps for ever, with a pound of memory each; torch only if asked."""

import sys
import time

import leakscope

if "torch" in sys.argv:
    import torch

    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        optimizer.zero_grad()
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
else:
    step = leakscope.step

kept = []
while True:
    kept.append(bytearray(2000))
    step()
    time.sleep(0.0005)
