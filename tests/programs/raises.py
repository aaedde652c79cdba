"""Fails in every place that leakscope listens to; each traceback is printed, the last is fatal."""

import gc
import io
import sys
import threading
import traceback
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        warnings.warn("from inside a module", stacklevel=2)
        return self.linear(x) + self.missing


class BadData(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 5:
            raise ValueError("bad sample 5")
        return index


class BadStream(IterableDataset):
    def __iter__(self):
        yield 1
        raise KeyError("bad stream")


def attempt(action):
    try:
        action()
    except Exception:  # noqa: BLE001 - any failure is what is wanted
        traceback.print_exc()
    sys.stderr.flush()
    gc.collect()  # or an iterator in a traceback dies in a forked worker, sooner or later


def bad_step():
    parameter = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    optimizer.step(lambda: 1 / 0)


def hooked():
    model = nn.Linear(2, 2)
    model.register_forward_hook(lambda *args: 1 / 0)
    model(torch.ones(1, 2))


def too_deep():
    class Deep(nn.Module):
        def forward(self, x):
            return self(x)

    try:
        Deep()(torch.ones(1))
    except RecursionError as error:
        print(type(error).__name__, file=sys.stderr)


if __name__ == "__main__":
    torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 0.3  # torch waits so long for bad workers
    attempt(lambda: nn.Sequential(nn.Linear(2, 2), Broken())(torch.ones(1, 2)))
    attempt(lambda: nn.Linear(2, 2)(torch.ones(1, 3)))
    attempt(lambda: list(DataLoader(BadData())))
    attempt(lambda: list(DataLoader(BadData(), num_workers=1)))
    attempt(lambda: list(DataLoader(BadStream(), num_workers=1)))
    attempt(lambda: torch.save({"lock": threading.Lock()}, io.BytesIO()))
    attempt(lambda: torch.save({}, "/no/such/folder/x.pt"))
    attempt(bad_step)
    attempt(hooked)
    attempt(too_deep)
    attempt(lambda: nn.Linear(2, 2).no_such_attribute)
    Broken()(torch.ones(1, 2))
