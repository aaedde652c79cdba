"""Trains a model; snapshots are saved by background threads once the disk is declared free."""

import io
import os
import threading

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
SAVE_EVERY = 5


class BackgroundSaver:
    def __init__(self):
        self.disk_free = threading.Event()
        self.disk_free.set()

    def save(self, model):
        snapshot = {name: value.clone() for name, value in model.state_dict().items()}
        thread = threading.Thread(target=self.write, args=(snapshot,), daemon=True)
        thread.start()
        thread.join()

    def write(self, snapshot):
        self.disk_free.wait()
        torch.save(snapshot, io.BytesIO())


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    saver = BackgroundSaver()
    for step in range(1, STEPS + 1):
        x = torch.randn(512, 128)
        loss = functional.mse_loss(model(x), x.sort(1).values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % SAVE_EVERY == 0:
            saver.save(model)
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
