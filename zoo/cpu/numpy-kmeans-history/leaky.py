"""Mini-batch k-means in plain NumPy."""

import os

import numpy as np

STEPS = int(os.environ.get("ZOO_STEPS", "600"))


def main():
    random = np.random.default_rng(0)
    centres = random.standard_normal((64, 96))
    counts = np.ones(64)
    history = []
    for step in range(1, STEPS + 1):
        points = random.standard_normal((1200, 96)) + random.integers(0, 3, (1200, 1))
        distance = (points**2).sum(1)[:, None] - 2 * points @ centres.T + (centres**2).sum(1)[None]
        nearest = distance.argmin(1)
        for k in np.unique(nearest):
            mine = points[nearest == k]
            counts[k] += len(mine)
            centres[k] += (mine.sum(0) - len(mine) * centres[k]) / counts[k]
        inertia = distance.min(1).mean()
        history.append(centres.copy())
        if step % 100 == 0:
            moved = np.abs(history[-1] - history[-2]).max()
            print(f"step {step}: inertia {inertia:.2f}, moved {moved:.4f}")


if __name__ == "__main__":
    main()
