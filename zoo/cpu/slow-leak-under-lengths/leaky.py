"""Trains a tagger on sentences of any length, and keeps some logits for calibration."""

import os
import random

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "300"))
TAGS = 32


class Tagger(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed = nn.Embedding(2000, width)
        self.mix = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, TAGS)

    def forward(self, ids):
        return self.head(self.mix(self.embed(ids))[0])


def main():
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    calibration = []
    for step in range(1, STEPS + 1):
        length = random.randrange(8, 96)
        ids = torch.randint(0, 2000, (24, length))
        logits = model(ids)
        loss = functional.cross_entropy(logits.flatten(0, 1), ids.flatten() % TAGS)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        calibration.append(torch.cat([logits[:, 0], logits[:8, 1]]).detach())
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
