"""Trains a model and uploads a checkpoint every 20 steps, packed in memory."""

import io
import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "300"))
SAVE_EVERY = 20


class Store:
    def __init__(self):
        self.sizes = {}

    def upload(self, step, packed):
        self.sizes[step] = len(packed)


def save(store, step, model):
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    packed = io.BytesIO()
    torch.save(weights, packed)
    store.upload(step, packed.getbuffer())


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    store = Store()
    for step in range(1, STEPS + 1):
        x = torch.randn(8, 512)
        loss = functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % SAVE_EVERY == 0:
            save(store, step, model)
            print(f"step {step}: loss {loss.item():.4f}, {store.sizes[step]} bytes uploaded")


if __name__ == "__main__":
    main()
