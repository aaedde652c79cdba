import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

STEPS = int(os.environ.get("ZOO_STEPS", "80"))


@jax.jit
def smooth(signal, strength):
    for _ in range(8):
        signal = signal + strength * (jnp.roll(signal, 1) - 2 * signal + jnp.roll(signal, -1))
    return jnp.tanh(signal).sum()


def main():
    signal = jnp.asarray(np.random.default_rng(0).normal(size=512).astype("float32"))
    best = (float("inf"), 0.0)
    for step in range(STEPS):
        strength = 0.1 + 0.001 * step
        best = min(best, (float(smooth(signal, strength)), strength))
        if step % 20 == 0:
            print(f"{step} {best[0]:.4f} at {best[1]:.3f}", flush=True)


main()
