import random
from collections import deque
from dataclasses import dataclass

import torch
from torch import nn

CFG = {
    "env_steps": 1600,
    "capacity": 250,
    "batch": 16,
    "gamma": 0.97,
    "lr": 5e-4,
    "sync_every": 100,
    "learn_every": 2,
}


@dataclass
class Transition:
    uid: int
    obs: torch.Tensor
    action: int
    reward: float
    nxt: torch.Tensor
    done: bool


class GridChase:
    """Agent and prey on a torus; the observation is the last four 24x24 occupancy planes."""

    moves = ((0, 1), (1, 0), (0, -1), (-1, 0))

    def __init__(self, size=24, seed=11):
        self.size = size
        self.rng = random.Random(seed)
        self.reset()

    def reset(self):
        self.agent = [self.rng.randrange(self.size), self.rng.randrange(self.size)]
        self.prey = [self.rng.randrange(self.size), self.rng.randrange(self.size)]
        self.t = 0
        self.planes = deque([self.plane() for _ in range(4)], maxlen=4)
        return torch.stack(tuple(self.planes))

    def plane(self):
        p = torch.zeros(self.size, self.size)
        p[self.agent[0], self.agent[1]] = 1.0
        p[self.prey[0], self.prey[1]] = -1.0
        return p

    def step(self, action):
        dy, dx = self.moves[action]
        self.agent = [(self.agent[0] + dy) % self.size, (self.agent[1] + dx) % self.size]
        if self.rng.random() < 0.5:
            dy, dx = self.rng.choice(self.moves)
            self.prey = [(self.prey[0] + dy) % self.size, (self.prey[1] + dx) % self.size]
        self.t += 1
        self.planes.append(self.plane())
        dist = abs(self.agent[0] - self.prey[0]) + abs(self.agent[1] - self.prey[1])
        done = dist == 0 or self.t >= 60
        return torch.stack(tuple(self.planes)), (10.0 if dist == 0 else -0.02 * dist), done


class QNet(nn.Module):
    def __init__(self, actions=4):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(4, 12, 5, stride=2),
            nn.ReLU(),
            nn.Conv2d(12, 16, 3, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(256, 64),
            nn.ReLU(),
        )
        self.value = nn.Linear(64, 1)
        self.adv = nn.Linear(64, actions)

    def forward(self, x):
        h = self.body(x)
        a = self.adv(h)
        return self.value(h) + a - a.mean(1, keepdim=True)


class PrioritizedReplay:
    def __init__(self, capacity, alpha=0.6):
        self.ring = deque(maxlen=capacity)
        self.alpha = alpha
        self.ranked = {}
        self.top = 1.0

    def push(self, tr):
        if len(self.ring) == self.ring.maxlen:
            self.ranked.pop(self.ring[0].uid)
        self.ring.append(tr)
        self.ranked[tr.uid] = [self.top, tr]

    def draw(self, n):
        weights = [self.ranked[t.uid][0] ** self.alpha for t in self.ring]
        return random.choices(self.ring, weights=weights, k=n)

    def feedback(self, batch, errors):
        for tr, err in zip(batch, errors.tolist(), strict=False):
            self.ranked[tr.uid][0] = abs(err) + 1e-3
            self.top = max(self.top, abs(err))


def learn(online, target, optimizer, memory):
    batch = memory.draw(CFG["batch"])
    obs = torch.stack([t.obs for t in batch])
    nxt = torch.stack([t.nxt for t in batch])
    action = torch.tensor([t.action for t in batch])
    reward = torch.tensor([t.reward for t in batch])
    alive = torch.tensor([0.0 if t.done else 1.0 for t in batch])
    with torch.no_grad():
        best = online(nxt).argmax(1, keepdim=True)
        goal = reward + CFG["gamma"] * alive * target(nxt).gather(1, best).squeeze(1)
    q = online(obs).gather(1, action[:, None]).squeeze(1)
    loss = nn.functional.smooth_l1_loss(q, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    memory.feedback(batch, (q - goal).detach())
    return loss.item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    env, online, target = GridChase(), QNet(), QNet()
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.RMSprop(online.parameters(), lr=CFG["lr"])
    memory = PrioritizedReplay(CFG["capacity"])
    obs, loss, score = env.reset(), 0.0, 0.0
    for t in range(1, CFG["env_steps"] + 1):
        if random.random() < max(0.1, 1 - t / 800):
            action = random.randrange(4)
        else:
            with torch.no_grad():
                action = int(online(obs[None]).argmax())
        nxt, reward, done = env.step(action)
        memory.push(Transition(t, obs, action, reward, nxt, done))
        score += reward
        obs = env.reset() if done else nxt
        if t > 64 and t % CFG["learn_every"] == 0:
            loss = learn(online, target, optimizer, memory)
        if t % CFG["sync_every"] == 0:
            target.load_state_dict(online.state_dict())
        if t % 50 == 0:
            print(f"env step {t:5d}  loss {loss:.4f}  score {score:.1f}")


if __name__ == "__main__":
    main()
