"""Everything at once: random lengths, an evaluation every 30 steps, a checkpoint every 50."""

import copy
import io
import os
import random

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "300"))
VOCABULARY = 500


class Model(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.mix = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, ids):
        return self.head(self.mix(self.embed(ids))[0])


def loss_of(model, ids):
    return functional.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def batch(count):
    return torch.randint(0, VOCABULARY, (count, random.randrange(6, 40)))


def main():
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    best = None
    for step in range(1, STEPS + 1):
        loss = loss_of(model, batch(8))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            model.eval()
            with torch.no_grad():
                held_out = [loss_of(model, batch(16)) for _ in range(4)]
            score = torch.stack(held_out).mean().item()
            model.train()
            if best is None or score < best[0]:
                best = (score, copy.deepcopy(model.state_dict()))
            print(f"step {step}: held-out loss {score:.3f}")
        if step % 50 == 0:
            file = io.BytesIO()
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)


if __name__ == "__main__":
    main()
