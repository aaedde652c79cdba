"""Trains while a growing pool of threads decodes the images of each batch."""

import os
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "300"))
WORKERS = 12


def decode(seed):
    generator = torch.Generator().manual_seed(seed)
    tiles = [torch.rand(48, 48, generator=generator) for _ in range(400)]
    return torch.stack([tile[:4, :4] for tile in tiles[::25]]).flatten()


def batches(pool, workers):
    """One more worker every 12 steps, until all are busy."""
    for step in range(STEPS):
        busy = min(1 + step // 12, workers)
        yield torch.stack(list(pool.map(decode, range(step, step + busy))))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with ThreadPoolExecutor(WORKERS) as pool:
        for step, x in enumerate(batches(pool, WORKERS), 1):
            loss = functional.mse_loss(model(x), x.flip(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 50 == 0:
                print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
