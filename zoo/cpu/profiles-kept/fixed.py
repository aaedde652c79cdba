"""Trains a small network, profiles each forward pass and names the dearest operator."""

import os

import torch
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


class StepTimes:
    def __init__(self):
        self.times = {}

    def add(self, recorded):
        for event in recorded.events():
            spent = self.times.get(event.name, 0) + event.self_cpu_time_total
            self.times[event.name] = spent

    def dearest(self):
        return max(self.times, key=self.times.get)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    times = StepTimes()
    for step in range(1, STEPS + 1):
        x = torch.randn(256, 64)
        with profile(activities=[ProfilerActivity.CPU]) as recorded:
            y = model(x)
        loss = functional.mse_loss(y, x.flip(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        times.add(recorded)
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.3f}, dearest {times.dearest()}")


if __name__ == "__main__":
    main()
