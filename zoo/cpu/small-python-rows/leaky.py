"""Trains a ranker and notes a few numbers for each step as Python objects."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "500"))


class Notes:
    def __init__(self):
        self.rows = []

    def add(self, step, scores):
        for place, score in enumerate(scores):
            self.rows.append({"step": step, "place": place, "score": score})


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(60, 800), nn.ReLU(), nn.Linear(800, 200), nn.Linear(200, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    notes = Notes()
    for step in range(1, STEPS + 1):
        x = torch.randn(160, 60)
        scores = model(x)[:, 0]
        loss = functional.margin_ranking_loss(scores[:80], scores[80:], x[:80, 0].sign())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        notes.add(step, scores[:7].tolist())
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f}, rows {len(notes.rows)}")


if __name__ == "__main__":
    main()
