"""Trains with a loader worker and keeps the batches for a look at the hardest ones."""

import os

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
BATCH = 16


class Utterances(Dataset):
    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        wave = torch.sin(torch.arange(512) * (1 + index % 17) / 64)
        return {
            "wave": wave,
            "target": wave[::64].clone(),
            "speaker": index % 17,
            "length": 512 - index % 100,
            "noise": 0.1 * (index % 5),
            "language": index % 3,
        }


class Hardest:
    def __init__(self):
        self.seen = []

    def add(self, loss, batch):
        self.seen.append((loss, batch))

    def speakers(self):
        _, batch = max(self.seen, key=lambda one: one[0])
        return sorted(set(batch["speaker"].tolist()))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Utterances(), BATCH, num_workers=1)
    model = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 8))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    hardest = Hardest()
    for step, batch in enumerate(loader, 1):
        loss = functional.mse_loss(model(batch["wave"]), batch["target"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hardest.add(loss.item(), batch)
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}, hardest {hardest.speakers()}")


if __name__ == "__main__":
    main()
