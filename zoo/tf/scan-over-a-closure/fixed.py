import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

STEPS = int(os.environ.get("ZOO_STEPS", "70"))


def body(carry, value):
    decay, level = carry
    level = decay * level + (1 - decay) * value
    return (decay, level), level


class Filter:
    def __init__(self):
        self.decay = jnp.float32(0.9)

    def run(self, series):
        _, smoothed = jax.lax.scan(body, (self.decay, jnp.float32(0)), series)
        return smoothed

    def adapt(self, error):
        self.decay = jnp.clip(self.decay + 0.001 * jnp.sign(error), 0.5, 0.99)


def main():
    rng, smoother = np.random.default_rng(0), Filter()
    for step in range(STEPS):
        series = jnp.asarray(rng.normal(size=64).astype("float32"))
        smoothed = smoother.run(series)
        smoother.adapt(jnp.mean(smoothed - series))
        if step % 20 == 0:
            print(f"{step} {float(smoother.decay):.4f}", flush=True)


main()
