import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

STEPS = int(os.environ.get("ZOO_STEPS", "70"))


@jax.jit
def score(weights, x):
    return jnp.tanh(x @ weights).sum()


class Service:
    def __init__(self):
        self.served = 0

    def serve(self, user, weights, x):
        self.served += 1
        return float(score(weights, x))


def main():
    rng, service, total = np.random.default_rng(0), Service(), 0.0
    for step in range(STEPS):
        weights = jnp.asarray(rng.normal(size=(64, 64)).astype("float32"))
        x = jnp.asarray(rng.normal(size=64).astype("float32"))
        total += service.serve(step, weights, x)
        if step % 20 == 0:
            print(f"{step} {total:.4f}", flush=True)


main()
