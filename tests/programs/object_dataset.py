"""Situation 2.2: a loader's workers read Python objects that the parent made, and call commands."""

import subprocess
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Records(Dataset):
    def __init__(self, count):
        self.records = [{"name": f"sample {i:08d}", "label": i} for i in range(count)]

    def __len__(self):
        return 240

    def __getitem__(self, index):
        if index % 60 == 0:
            subprocess.run(["true"], check=True)
        time.sleep(0.03)
        part = self.records[index * 1000 : (index + 1) * 1000]
        return torch.tensor([one["label"] for one in part])


if __name__ == "__main__":
    loader = DataLoader(
        Records(240_000), batch_size=1, num_workers=2, multiprocessing_context=sys.argv[1]
    )
    print(sum(int(batch.sum()) for batch in loader))
