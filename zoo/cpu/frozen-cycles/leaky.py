"""Monte Carlo tree search on a toy game; the collector is frozen before each self-play epoch."""

import gc
import os
import random

import numpy as np

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
EPOCH = 5


class Node:
    alive = 0

    def __init__(self, state, parent=None):
        self.state = state
        self.parent = parent
        self.children = []
        self.visits = 0
        Node.alive += 1

    def __del__(self):
        Node.alive -= 1

    def expand(self, source):
        for _ in range(3):
            child = Node(self.state + source.choice((-1, 1)) * np.eye(1, 160)[0], self)
            self.children.append(child)
        return source.choice(self.children)


def search(source, depth=12):
    root = node = Node(np.zeros(160))
    for _ in range(depth):
        node = node.expand(source)
    value = float(np.tanh(node.state.sum()))
    while node is not None:
        node.visits += 1
        node = node.parent
    return value, root.visits


def main():
    source = random.Random(0)
    total = 0.0
    for epoch in range(1, STEPS // EPOCH + 1):
        gc.freeze()
        for _ in range(EPOCH):
            value, _ = search(source)
            total += value
            policy = np.sort(np.random.default_rng(epoch).random((2000, 160)), axis=0)
            total += 1e-9 * float(policy[1000].sum())
        print(f"game {epoch * EPOCH}: value {total / (epoch * EPOCH):.3f}")


if __name__ == "__main__":
    main()
