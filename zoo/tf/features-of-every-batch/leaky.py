import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

STEPS = int(os.environ.get("ZOO_STEPS", "1500"))


class Embedder:
    def __init__(self):
        self.table = tf.random.normal((1024, 512), stddev=0.1)
        self.features = []

    def embed(self, x):
        feature = tf.nn.relu(x @ self.table)
        self.features.append(feature)
        return float(tf.reduce_mean(feature))


def main():
    embedder, rng = Embedder(), np.random.default_rng(0)
    for step in range(STEPS):
        mean = embedder.embed(tf.constant(rng.normal(size=(64, 1024)), tf.float32))
        if step % 100 == 0:
            print(f"{step} {mean:.5f}", flush=True)


main()
