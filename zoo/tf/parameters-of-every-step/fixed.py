import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

STEPS = int(os.environ.get("ZOO_STEPS", "1200"))


def loss(params, x):
    return jnp.mean(jnp.square(jnp.tanh(x @ params["w"]) @ params["v"] - x[:, :1]))


@jax.jit
def update(params, x):
    grads = jax.grad(loss)(params, x)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads)


class Trainer:
    def __init__(self):
        key = jax.random.key(0)
        self.params = {"w": jax.random.normal(key, (256, 256)) * 0.1, "v": jnp.zeros((256, 1))}
        self.averaged = self.params

    def step(self, x):
        self.params = update(self.params, x)
        self.averaged = jax.tree.map(lambda a, p: 0.99 * a + 0.01 * p, self.averaged, self.params)


def main():
    trainer, rng = Trainer(), np.random.default_rng(0)
    for step in range(STEPS):
        trainer.step(rng.normal(size=(256, 256)).astype("float32"))
        if step % 200 == 0:
            print(f"{step} {float(jnp.mean(trainer.params['w'])):.5f}", flush=True)


main()
