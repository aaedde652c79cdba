"""A small DQN on frames of a toy game, with a replay buffer."""

import os
import random
from collections import deque

import numpy as np
import torch
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("ZOO_STEPS", "400"))
FRAME = (4, 20, 20)


class Game:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def frame(self):
        return self.random.integers(0, 255, FRAME, dtype=np.uint8)

    def act(self, action):
        return self.frame(), float(action == 1) - 0.1


def as_batch(frames):
    return torch.from_numpy(np.stack(frames)).float().div_(255)


def main():
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    game = Game(0)
    q_net = nn.Sequential(
        nn.Conv2d(4, 32, 5, 2), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 64, 64), nn.Linear(64, 3)
    )
    optimizer = torch.optim.RMSprop(q_net.parameters(), lr=1e-4)
    memory = deque()
    state = game.frame()
    for step in range(1, STEPS + 1):
        for _ in range(4):
            with torch.no_grad():
                action = int(q_net(as_batch([state])).argmax())
            following, reward = game.act(action)
            memory.append((state, action, reward, following))
            state = following
        chosen = [memory[random.randrange(len(memory))] for _ in range(32)]
        states, actions, rewards, followings = zip(*chosen, strict=True)
        with torch.no_grad():
            target = torch.tensor(rewards) + 0.99 * q_net(as_batch(followings)).amax(1)
        value = q_net(as_batch(states)).gather(1, torch.tensor(actions)[:, None])[:, 0]
        loss = functional.smooth_l1_loss(value, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}, buffer {len(memory)}")


if __name__ == "__main__":
    main()
