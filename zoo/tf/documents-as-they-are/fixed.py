import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

STEPS = int(os.environ.get("ZOO_STEPS", "70"))


@jax.jit
def pooled(tokens, table):
    states = table[tokens]
    for _ in range(2):
        states = jax.nn.relu(states - states.mean(axis=0))
    return states.max(axis=0).sum()


def pad(tokens, to):
    return np.pad(tokens, (0, to - len(tokens)))


class Reader:
    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.table = jnp.asarray(self.rng.normal(size=(200, 32)).astype("float32"))

    def read(self, step):
        tokens = self.rng.integers(0, 200, size=20 + step)
        return float(pooled(pad(tokens, 128), self.table))


def main():
    reader, total = Reader(), 0.0
    for step in range(STEPS):
        total += reader.read(step)
        if step % 20 == 0:
            print(f"{step} {total:.3f}", flush=True)


main()
