import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

STEPS = int(os.environ.get("ZOO_STEPS", "70"))


def make_scorer(weights):
    """A scorer for one user, with the weights built in."""
    return jax.jit(lambda x: jnp.tanh(x @ weights).sum())


class Service:
    def __init__(self):
        self.scorers = {}

    def serve(self, user, weights, x):
        self.scorers[user] = make_scorer(weights)
        return float(self.scorers[user](x))


def main():
    rng, service, total = np.random.default_rng(0), Service(), 0.0
    for step in range(STEPS):
        weights = jnp.asarray(rng.normal(size=(64, 64)).astype("float32"))
        x = jnp.asarray(rng.normal(size=64).astype("float32"))
        total += service.serve(step, weights, x)
        if step % 20 == 0:
            print(f"{step} {total:.4f}", flush=True)


main()
