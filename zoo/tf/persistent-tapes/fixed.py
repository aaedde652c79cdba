import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

STEPS = int(os.environ.get("ZOO_STEPS", "2500"))


class Probe:
    """Reads sensitivities of a small network, several per batch."""

    def __init__(self):
        self.weights = tf.Variable(tf.random.normal((256, 256), stddev=0.1))

    def sensitivity(self, x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            hidden = tf.tanh(x @ self.weights)
            mean, power = tf.reduce_mean(hidden), tf.reduce_mean(tf.square(hidden))
        slopes = tape.gradient(mean, x), tape.gradient(power, x)
        del tape
        return [float(tf.reduce_max(tf.abs(slope))) for slope in slopes]


def main():
    probe, rng = Probe(), np.random.default_rng(0)
    for step in range(STEPS):
        first, second = probe.sensitivity(tf.constant(rng.normal(size=(64, 256)), tf.float32))
        if step % 100 == 0:
            print(f"{step} {first:.5f} {second:.5f}", flush=True)


main()
