"""Scores texts as they come in, each in an asyncio task of its own."""

import asyncio
import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "300"))


class Scorer:
    def __init__(self, model):
        self.model = model
        self.started = []

    async def score(self, tokens):
        await asyncio.sleep(0)
        with torch.inference_mode():
            return self.model(tokens)

    def start(self, tokens):
        task = asyncio.create_task(self.score(tokens))
        self.started.append(task)
        return task


async def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    scorer = Scorer(nn.Sequential(nn.Embedding(500, 64), nn.Linear(64, 256), nn.Linear(256, 64)))
    best = 0.0
    for step in range(1, STEPS + 1):
        scores = await scorer.start(torch.randint(0, 500, (128,)))
        best = max(best, scores.amax().item())
        if step % 50 == 0:
            print(f"text {step}: best {best:.3f}")


if __name__ == "__main__":
    asyncio.run(main())
