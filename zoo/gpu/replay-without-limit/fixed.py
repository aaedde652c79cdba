"""Experience is kept on the device in a deque with a maxlen."""

import os
from collections import deque

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "500"))


class Replay:
    def __init__(self):
        self.memory = deque(maxlen=64)

    def push(self, state, action):
        self.memory.append((state, action))


def play():
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 64)).cuda()
    optimizer = torch.optim.Adam(policy.parameters())
    replay = Replay()
    state = torch.randn(64, 512, device="cuda")
    for step in range(STEPS):
        action = policy(state)
        loss = (action.sum(1) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        replay.push(state, action.detach())
        state = torch.randn(64, 512, device="cuda")
        if step % 100 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    play()
