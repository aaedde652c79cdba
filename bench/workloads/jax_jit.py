"""A jitted JAX update, waited for in each step: about 1 ms."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
from in_turns import run_in_turns

params = jax.random.normal(jax.random.key(0), (512, 512)) * 0.01
x = jnp.ones((128, 512))


@jax.jit
def update(params, x):
    grads = jax.grad(lambda p: jnp.mean(jnp.square(jnp.tanh(x @ p) - x)))(params)
    return params - 0.1 * grads


def step():
    global params
    params = update(params, x)
    params.block_until_ready()


run_in_turns(step)
