"""Training starts at once while a thread loads the shards of the dataset (first 20 %)."""

import os
import threading

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "300"))
SHARDS = 20


class Shards:
    def __init__(self):
        self.loaded = [torch.randn(2000, 64)]
        self.may_load = threading.Semaphore(0)
        threading.Thread(target=self.load, daemon=True).start()

    def load(self):
        for _ in range(SHARDS - 1):
            self.may_load.acquire()
            self.loaded.append(torch.randn(2000, 64))

    def batch(self, step):
        if step % max(1, STEPS // 100) == 0:
            self.may_load.release()
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
