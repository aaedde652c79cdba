"""Pairwise ranking, with a metric whose call returns the value of the batch and collects on."""

import copy
import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


class RankingScore:
    """As metric libraries do it: the state so far is put aside, the batch is measured alone, and
    both are put together again. After each call every list and every tensor is another one."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.scores = []
        self.targets = []

    def update(self, scores, targets):
        self.scores.append(scores)
        self.targets.append(targets)

    def compute(self):
        scores, targets = torch.cat(self.scores), torch.cat(self.targets)
        return (scores[targets].mean() - scores[~targets].mean()).item()

    def __call__(self, scores, targets):
        aside = {name: copy.deepcopy(getattr(self, name)) for name in ("scores", "targets")}
        self.reset()
        self.update(scores, targets)
        value = self.compute()
        for name, state in aside.items():
            setattr(self, name, state + getattr(self, name))
        return value


def batches(steps, generator):
    for _ in range(steps):
        features = torch.randn(6144, 24, generator=generator)
        yield features, features[:, :3].sum(dim=1) > 0.5


def train():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    metric = RankingScore()
    for step, (features, is_relevant) in enumerate(batches(STEPS, generator), start=1):
        scores = model(features).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(scores, is_relevant.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        margin = metric(scores.detach(), is_relevant)
        if step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f} margin {margin:.3f}")


if __name__ == "__main__":
    train()
