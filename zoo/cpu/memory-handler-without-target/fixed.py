"""Fits a mixture by gradient descent and logs what it does, for a look after a crash."""

import logging
import logging.handlers
import os

import numpy as np

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
log = logging.getLogger("mixture")


def set_up_logging():
    recent = logging.handlers.MemoryHandler(50, logging.ERROR, logging.NullHandler())
    log.addHandler(recent)
    log.setLevel(logging.DEBUG)
    log.propagate = False


def responsibilities(points, means):
    distance = ((points[:, None] - means[None]) ** 2).sum(-1)
    weights = np.exp(distance.min(1, keepdims=True) - distance)
    return weights / weights.sum(1, keepdims=True)


def main():
    set_up_logging()
    random = np.random.default_rng(0)
    truth = 3 * random.standard_normal((80, 64))
    means = truth + random.standard_normal((80, 64))
    for step in range(1, STEPS + 1):
        points = truth[random.integers(0, 80, 300)] + random.standard_normal((300, 64))
        share = responsibilities(points, means)
        gradient = share.T @ points - share.sum(0)[:, None] * means
        means = means + 0.02 * gradient
        log.debug("step %d: gradient %.3f", step, np.abs(gradient).mean())
        if step % 10 == 0:
            error = np.abs(means - truth).mean()
            log.info("step %d: error %.3f", step, error)
            print(f"step {step}: error {error:.3f}")


if __name__ == "__main__":
    main()
