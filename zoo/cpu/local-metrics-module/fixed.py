"""Trains a multi-label tagger and looks at its precision after each epoch."""

import os

import torch
from curves import PrecisionCurve
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
EPOCH = 10
TAGS = 12


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    truth = torch.randn(40, TAGS)
    model = nn.Sequential(nn.Linear(40, 160), nn.ReLU(), nn.Linear(160, TAGS))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    curve = PrecisionCurve()
    for step in range(1, STEPS + 1):
        x = torch.randn(512, 40)
        y = (x @ truth > 1).float()
        logits = model(x)
        loss = functional.binary_cross_entropy_with_logits(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.update(logits, y)
        if step % EPOCH == 0:
            precision = curve.compute()
            curve.reset()
            print(f"step {step}: loss {loss.item():.3f}, precision {precision[10]:.3f}")


if __name__ == "__main__":
    main()
