"""Plans in a continuing task; the tree below the chosen move serves the next one."""

import argparse
import math
import os
from dataclasses import dataclass

import numpy as np
import torch
from gridworld import MOVES, Pursuit
from torch import nn


@dataclass
class SearchConfig:
    moves: int = int(os.environ.get("ZOO_STEPS", "220"))
    simulations: int = 18
    c_puct: float = 1.6
    discount: float = 0.95
    seed: int = 11


class PolicyValueNet(nn.Module):
    def __init__(self, size=16, width=64):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(4 * size * size, width), nn.ReLU())
        self.policy = nn.Linear(width, len(MOVES))
        self.value = nn.Linear(width, 1)

    def forward(self, x):
        h = self.body(x)
        return torch.softmax(self.policy(h), -1), torch.tanh(self.value(h)).squeeze(-1)


class Node:
    def __init__(self, planes, prior, reward=0.0, parent=None):
        self.planes = planes
        self.prior = prior
        self.reward = reward
        self.parent = parent
        self.children = {}
        self.visits = 0
        self.total = 0.0

    @property
    def q(self):
        return self.total / self.visits if self.visits else 0.0

    def select(self, c_puct):
        scale = c_puct * math.sqrt(self.visits)
        return max(
            self.children.values(), key=lambda n: n.reward + n.q + scale * n.prior / (1 + n.visits)
        )


class Planner:
    def __init__(self, net, cfg):
        self.net = net
        self.cfg = cfg
        self.root = None

    @torch.no_grad()
    def expand(self, node):
        priors, value = self.net(torch.from_numpy(node.planes)[None])
        for action, p in enumerate(priors[0].tolist()):
            planes, reward = Pursuit.simulate(node.planes, action)
            node.children[action] = Node(planes, p, reward, parent=node)
        return value.item()

    def backup(self, node, value):
        while node is not None:
            node.visits += 1
            node.total += value
            value = node.reward + self.cfg.discount * value
            node = node.parent

    def search(self, state):
        if self.root is None:
            self.root = Node(state, 1.0)
        self.root.planes = state
        for _ in range(self.cfg.simulations):
            node = self.root
            while node.children:
                node = node.select(self.cfg.c_puct)
            self.backup(node, self.expand(node))
        return max(self.root.children, key=lambda a: self.root.children[a].visits)

    def advance(self, action):
        self.root = self.root.children[action]


def learn(net, opt, states, returns):
    x = torch.from_numpy(np.stack(states))
    _, value = net(x)
    loss = nn.functional.mse_loss(value, torch.tensor(returns))
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--moves", type=int, default=SearchConfig.moves)
    parser.add_argument("--simulations", type=int, default=SearchConfig.simulations)
    args = parser.parse_args()
    cfg = SearchConfig(moves=args.moves, simulations=args.simulations)
    torch.manual_seed(cfg.seed)
    torch.set_num_threads(1)

    env = Pursuit(seed=cfg.seed)
    net = PolicyValueNet()
    opt = torch.optim.SGD(net.parameters(), lr=0.02)
    planner = Planner(net, cfg)
    state, score = env.state, 0.0
    window = []
    for move in range(1, cfg.moves + 1):
        action = planner.search(state)
        planner.advance(action)
        previous, (state, reward) = state, env.step(action)
        score += reward
        window = ([*window, (previous, reward)])[-16:]
        loss = learn(net, opt, [s for s, _ in window], [r for _, r in window])
        if move % 10 == 0:
            print(f"move {move} score={score:.1f} root_q={planner.root.q:.4f} loss={loss:.5f}")


if __name__ == "__main__":
    main()
