"""REINFORCE on a toy control task; statistics are read from the episodes played."""

import os
from typing import ClassVar

import torch
from torch import nn

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


class Episode:
    instances: ClassVar[list] = []

    def __init__(self, observations, actions, rewards):
        self.observations = observations
        self.actions = actions
        self.rewards = rewards
        Episode.instances.append(self)

    @property
    def score(self):
        return self.rewards.sum().item()

    @classmethod
    def average_score(cls, last=20):
        recent = cls.instances[-last:]
        return sum(episode.score for episode in recent) / len(recent)


@torch.no_grad()
def play(policy, length=200):
    observations = torch.cumsum(0.3 * torch.randn(length, 32), 0)
    actions = torch.multinomial(policy(observations).softmax(1), 1)[:, 0]
    rewards = (observations[:, 0].sign() == 2 * actions - 1).float()
    return Episode(observations, actions, rewards)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    policy = nn.Sequential(nn.Linear(32, 512), nn.Tanh(), nn.Linear(512, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    for step in range(1, STEPS + 1):
        episode = play(policy)
        advantage = episode.rewards - episode.rewards.mean()
        chosen = policy(episode.observations).log_softmax(1).gather(1, episode.actions[:, None])
        loss = -(chosen[:, 0] * advantage).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: score {Episode.average_score():.1f}")


if __name__ == "__main__":
    main()
