"""All shards of the dataset are loaded before training starts."""

import os

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "300"))
SHARDS = 20


class Shards:
    def __init__(self):
        self.loaded = [torch.randn(2000, 64) for _ in range(SHARDS)]

    def batch(self, step):
        shard = self.loaded[step % len(self.loaded)]
        return shard[torch.randint(0, 2000, (256,))]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    shards = Shards()
    model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 64))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, STEPS + 1):
        x = shards.batch(step)
        loss = functional.mse_loss(model(x), x.flip(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}, shards {len(shards.loaded)}")


if __name__ == "__main__":
    main()
