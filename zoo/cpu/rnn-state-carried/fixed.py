"""Streams sensor windows through an LSTM; its state goes on from window to window."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "400"))


class Forecaster(nn.Module):
    def __init__(self, channels=16, hidden=256):
        super().__init__()
        self.lstm = nn.LSTM(channels, hidden, batch_first=True)
        self.head = nn.Linear(hidden, channels)

    def forward(self, window, state):
        out, state = self.lstm(window, state)
        return self.head(out), state


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Forecaster().eval()
    state = None
    for step in range(1, STEPS + 1):
        window = torch.randn(4, 48, 16)
        predicted, state = model(window, state)
        state = tuple(part.detach() for part in state)
        surprise = (predicted[:, :-1] - window[:, 1:]).pow(2).mean().item()
        if step % 50 == 0:
            print(f"window {step}: surprise {surprise:.3f}")


if __name__ == "__main__":
    main()
