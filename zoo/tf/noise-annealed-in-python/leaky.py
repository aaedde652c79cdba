import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

STEPS = int(os.environ.get("ZOO_STEPS", "140"))


class Denoiser(tf.Module):
    def __init__(self, width=48):
        super().__init__()
        self.down = tf.Variable(tf.random.normal((32, width), stddev=0.1))
        self.up = tf.Variable(tf.random.normal((width, 32), stddev=0.1))

    def __call__(self, x):
        return tf.tanh(x @ self.down) @ self.up


model = Denoiser()


@tf.function
def update(x, noise):
    with tf.GradientTape() as tape:
        seen = x + noise * tf.random.normal(tf.shape(x))
        loss = tf.reduce_mean(tf.square(model(seen) - x))
    variables = model.trainable_variables
    for variable, grad in zip(variables, tape.gradient(loss, variables), strict=True):
        variable.assign_sub(0.05 * grad)
    return loss


def anneal(step):
    """The noise falls a little with every step."""
    return 1.0 / (1.0 + 0.01 * step)


def main():
    rng = np.random.default_rng(0)
    for step in range(STEPS):
        x = tf.constant(rng.normal(size=(16, 32)), tf.float32)
        loss = update(x, anneal(step))
        if step % 35 == 0:
            print(f"{step} {float(loss):.4f}", flush=True)


main()
