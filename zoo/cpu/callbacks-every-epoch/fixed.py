"""Trains an intent classifier; a fresh confusion report is drawn up in each epoch."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
EPOCH = 5
INTENTS = 160


class ConfusionReport:
    def __init__(self):
        self.counts = torch.zeros(3, INTENTS, INTENTS)

    def on_batch_end(self, logits, y):
        for rank, guess in enumerate(logits.topk(3).indices.T):
            self.counts[rank].index_put_((y, guess), torch.ones(()), accumulate=True)

    def accuracy(self):
        return (self.counts[0].diagonal().sum() / self.counts[0].sum()).item()


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.callbacks = []

    def fit_epoch(self, batches, report):
        self.callbacks = [report.on_batch_end]
        for x, y in batches:
            logits = self.model(x)
            loss = functional.cross_entropy(logits, y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            for callback in self.callbacks:
                callback(logits.detach(), y)
        return loss.item()


def make_batches(centres):
    for _ in range(EPOCH):
        y = torch.randint(0, INTENTS, (96,))
        yield centres[y] + torch.randn(96, 64), y


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    centres = torch.randn(INTENTS, 64)
    model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, INTENTS))
    trainer = Trainer(model)
    for epoch in range(1, STEPS // EPOCH + 1):
        report = ConfusionReport()
        loss = trainer.fit_epoch(make_batches(centres), report)
        print(f"step {epoch * EPOCH}: loss {loss:.3f}, accuracy {report.accuracy():.3f}")


if __name__ == "__main__":
    main()
