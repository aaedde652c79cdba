"""Trains quietly: a handler keeps the log for a summary at the end."""

import logging
import os
from collections import deque

import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "400"))
log = logging.getLogger("train")


class Collect(logging.Handler):
    def __init__(self):
        super().__init__(logging.DEBUG)
        self.records = deque(maxlen=20)

    def emit(self, record):
        self.records.append(record)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    handler = Collect()
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    log.propagate = False
    model = nn.Sequential(nn.Linear(100, 800), nn.ReLU(), nn.Linear(800, 800), nn.Linear(800, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for step in range(1, STEPS + 1):
        x = torch.randn(128, 100)
        loss = functional.mse_loss(model(x), x[:, :5])
        optimizer.zero_grad()
        loss.backward()
        norms = {name: p.grad.norm() for name, p in model.named_parameters()}
        optimizer.step()
        log.debug("step %d: loss %s, gradients %s", step, loss.detach(), norms)
    for record in list(handler.records)[-3:]:
        print(record.getMessage()[:60])


if __name__ == "__main__":
    main()
