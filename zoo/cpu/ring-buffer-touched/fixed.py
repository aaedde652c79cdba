"""Off-policy training with a ring buffer in NumPy that is allocated before the start."""

import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
CAPACITY = 16 * STEPS // 2


class RingBuffer:
    def __init__(self, capacity, shape):
        self.states = np.full((capacity, *shape), 0.5, dtype=np.float32)
        self.rewards = np.zeros(capacity, dtype=np.float32)
        self.size = 0
        self.place = 0

    def add(self, state, reward):
        self.states[self.place] = state
        self.rewards[self.place] = reward
        self.place = (self.place + 1) % len(self.states)
        self.size = min(self.size + 1, len(self.states))

    def sample(self, random, count=32):
        chosen = random.integers(0, self.size, count)
        return torch.from_numpy(self.states[chosen]), torch.from_numpy(self.rewards[chosen])


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    buffer = RingBuffer(CAPACITY, (4, 24, 24))
    critic = nn.Sequential(nn.Conv2d(4, 16, 5, 2), nn.ReLU(), nn.Flatten(), nn.Linear(1600, 1))
    optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)
    for step in range(1, STEPS + 1):
        for _ in range(16):
            state = random.random((4, 24, 24), dtype=np.float32)
            buffer.add(state, state[0].mean() - 0.5)
        states, rewards = buffer.sample(random)
        loss = functional.mse_loss(critic(states)[:, 0], rewards)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}, filled {buffer.size / CAPACITY:.0%}")


if __name__ == "__main__":
    main()
