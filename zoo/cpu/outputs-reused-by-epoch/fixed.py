"""A small trainer class with epochs; outputs are gathered for an epoch-end summary."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
EPOCH = 40


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.outputs = []

    def training_step(self, x):
        predicted = self.model(x)
        loss = functional.mse_loss(predicted, x.cos())
        self.outputs.append({"loss": loss.detach(), "predicted": predicted.detach().std()})
        return loss

    def fit(self, epochs):
        for epoch in range(1, epochs + 1):
            self.outputs = []
            for _ in range(EPOCH):
                loss = self.training_step(torch.randn(192, 80))
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            mean = torch.stack([output["loss"] for output in self.outputs]).mean()
            spread = torch.stack([output["predicted"] for output in self.outputs]).mean()
            print(f"step {epoch * EPOCH}: loss {mean:.4f}, spread {spread:.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    Trainer(nn.Sequential(nn.Linear(80, 500), nn.Tanh(), nn.Linear(500, 80))).fit(STEPS // EPOCH)
