"""Scores a shard offline: batches are copied on a side stream while the model runs."""

import contextlib
import os
import time
from dataclasses import dataclass
from typing import Optional

import torch
from torch import nn

NUM_BATCHES = int(os.environ.get("ZOO_STEPS", "400"))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
ON_GPU = device.type == "cuda"

ROWS = 2048 if ON_GPU else 256
FEATURES = 512 if ON_GPU else 128
WIDTH = 6144 if ON_GPU else 640
LAYERS = 5


@dataclass
class Transfer:
    stream: Optional["torch.cuda.Stream"]
    event: Optional["torch.cuda.Event"]
    batch: torch.Tensor


class ShardReader:
    """Cycles over a few pinned host blocks, as a memory-mapped shard would."""

    def __init__(self, blocks=6, seed=11):
        gen = torch.Generator().manual_seed(seed)
        self.blocks = [torch.randn(ROWS, FEATURES, generator=gen) * 3 + 1 for _ in range(blocks)]
        if ON_GPU:
            self.blocks = [b.pin_memory() for b in self.blocks]

    def __getitem__(self, index):
        return self.blocks[index % len(self.blocks)]


class Prefetcher:
    def __init__(self, reader, total, depth=2):
        self.reader = reader
        self.total = total
        self.depth = depth
        self.inflight = {}
        self.stream = torch.cuda.Stream() if ON_GPU else None
        self.mean = torch.full((FEATURES,), 1.0, device=device)
        self.std = torch.full((FEATURES,), 3.0, device=device)
        if ON_GPU:
            torch.cuda.synchronize()
        for index in range(min(depth, total)):
            self.launch(index)

    def launch(self, index):
        stream = self.stream
        with torch.cuda.stream(stream) if ON_GPU else contextlib.nullcontext():
            raw = self.reader[index].to(device, non_blocking=True)
            batch = (raw - self.mean) / self.std
            event = None
            if ON_GPU:
                event = torch.cuda.Event()
                event.record(stream)
        self.inflight[index] = Transfer(stream, event, batch)

    def take(self, index):
        transfer = self.inflight.pop(index)
        if transfer.event is not None:
            current = torch.cuda.current_stream()
            current.wait_event(transfer.event)
            transfer.batch.record_stream(current)
        following = index + self.depth
        if following < self.total:
            self.launch(following)
        return transfer.batch

    def __iter__(self):
        for index in range(self.total):
            yield self.take(index)


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Linear(FEATURES, WIDTH), nn.SiLU()]
        for _ in range(LAYERS - 1):
            layers += [nn.Linear(WIDTH, WIDTH), nn.SiLU()]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        return torch.sigmoid(self.head(self.body(x))).squeeze(-1)


class RunningMean:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, values):
        self.total += values.sum().item()
        self.count += values.numel()

    @property
    def value(self):
        return self.total / max(1, self.count)


@torch.inference_mode()
def score_shard():
    model = Scorer().to(device).eval()
    prefetcher = Prefetcher(ShardReader(), NUM_BATCHES)
    running = RunningMean()
    for index, batch in enumerate(prefetcher, start=1):
        scores = model(batch)
        running.add(scores)
        if index % 40 == 0:
            print(
                f"[{index}/{NUM_BATCHES}] rows={running.count} mean={running.value:.5f}",
                flush=True,
            )
    return running


def main():
    if not ON_GPU:
        torch.set_num_threads(1)
    torch.manual_seed(11)
    start = time.time()
    running = score_shard()
    print(f"scored {running.count} rows, mean {running.value:.5f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
