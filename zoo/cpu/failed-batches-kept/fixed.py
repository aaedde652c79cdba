"""Trains with batches of which some are broken; the failures are counted at the end."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "300"))


class BrokenBatchError(ValueError):
    pass


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        self.failures = []

    def train_on(self, batch):
        scaled = (batch - batch.mean(0)) / batch.std(0)
        if not torch.isfinite(scaled).all():
            raise BrokenBatchError("a column without spread")
        loss = functional.mse_loss(self.model(scaled), scaled[:, :8])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def try_on(self, batch):
        try:
            return self.train_on(batch)
        except BrokenBatchError as error:
            self.failures.append(str(error))
            return None


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    trainer = Trainer(nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 8)))
    for step in range(1, STEPS + 1):
        batch = torch.randn(256, 64)
        if step % 2:
            trainer.try_on(torch.cat([batch[:, 1:], torch.ones(256, 1)], 1))
        loss = trainer.try_on(batch)
        if step % 50 == 0:
            print(f"step {step}: loss {loss:.3f}, {len(trainer.failures)} broken")


if __name__ == "__main__":
    main()
