"""Solves many small diffusion problems in NumPy, each in a workspace of its own."""

import os
import weakref

import numpy as np

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


class Workspace:
    open_count = 0

    def __init__(self, size):
        self.field = np.zeros((size, size))
        Workspace.open_count += 1
        weakref.finalize(self, self.release)

    def release(self):
        Workspace.open_count -= 1

    def solve(self, source, sweeps=60):
        for _ in range(sweeps):
            self.field[1:-1, 1:-1] = 0.25 * (
                self.field[:-2, 1:-1]
                + self.field[2:, 1:-1]
                + self.field[1:-1, :-2]
                + self.field[1:-1, 2:]
                + source[1:-1, 1:-1]
            )
        return float(self.field.max())


def main():
    random = np.random.default_rng(0)
    hottest = 0.0
    for step in range(1, STEPS + 1):
        source = random.random((200, 200))
        hottest = max(hottest, Workspace(200).solve(source))
        if step % 10 == 0:
            print(f"problem {step}: hottest {hottest:.3f}")


if __name__ == "__main__":
    main()
