"""A continuing pursuit task on a torus: the agent chases food that reappears, hazards drift."""

import numpy as np

MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])


class Pursuit:
    def __init__(self, size=16, seed=0):
        self.size = size
        self.rng = np.random.default_rng(seed)
        planes = np.zeros((4, size, size), np.float32)
        planes[0, size // 2, size // 2] = 1
        for _ in range(10):
            planes[1, self.rng.integers(size), self.rng.integers(size)] = 1
        for _ in range(6):
            planes[2, self.rng.integers(size), self.rng.integers(size)] = 1
        self.state = planes

    @staticmethod
    def simulate(planes, action):
        """Deterministic model of one move, as the planner sees it."""
        nxt = planes.copy()
        nxt[0] = np.roll(planes[0], tuple(MOVES[action]), (0, 1))
        here = np.unravel_index(int(nxt[0].argmax()), nxt[0].shape)
        reward = float(nxt[1][here]) - float(nxt[2][here])
        nxt[1][here] = 0
        nxt[3] = np.maximum(planes[3] * 0.9, nxt[0])
        return nxt, reward

    def step(self, action):
        self.state, reward = self.simulate(self.state, action)
        if self.state[1].sum() < 8:
            self.state[1, self.rng.integers(self.size), self.rng.integers(self.size)] = 1
        return self.state, reward
