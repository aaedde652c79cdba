"""Two loader workers read a data set of Python objects, and call a program for some of them."""

import subprocess
import sys

import torch
from torch.utils.data import DataLoader, Dataset

BATCHES, BATCH = 256, 2000


class Records(Dataset):
    def __init__(self):
        self.records = [
            {"path": f"shard-{i % 97}/{i:09d}.jpg", "text": f"item {i} " + "x" * 100}
            for i in range(BATCHES * BATCH)
        ]

    def __len__(self):
        return len(self.records)

    def __getitem__(self, index):
        record = self.records[index]
        if index % (16 * BATCH) == 0:
            code = "x = bytearray(30 << 20); import time; time.sleep(0.3)"
            subprocess.run([sys.executable, "-S", "-c", code], check=True)
        return torch.tensor(len(record["path"]) + len(record["text"]))


if __name__ == "__main__":
    torch.set_num_threads(1)
    total = 0
    for batch in DataLoader(Records(), batch_size=BATCH, num_workers=2):
        total += int(batch.sum())
    print(total)
