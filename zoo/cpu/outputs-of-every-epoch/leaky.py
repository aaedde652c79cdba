"""Six epochs; at the end of each the predictions on the training set are kept."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "300"))
EPOCHS = 6


class History:
    def __init__(self):
        self.epochs = []

    def end_of_epoch(self, model, x):
        with torch.no_grad():
            self.epochs.append(torch.cat([model(part) for part in x.split(250)]))
        return (self.epochs[-1] - self.epochs[0]).abs().mean().item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(8000, 64)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    history = History()
    for epoch in range(EPOCHS):
        for part in torch.randperm(len(x)).chunk(STEPS // EPOCHS):
            loss = functional.mse_loss(model(x[part]), x[part].flip(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        moved = history.end_of_epoch(model, x)
        print(f"epoch {epoch}: loss {loss.item():.3f}, predictions moved by {moved:.3f}")


if __name__ == "__main__":
    main()
