import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"  # on only by default where the processor has AVX-512

import numpy as np
import tensorflow as tf

STEPS = int(os.environ.get("ZOO_STEPS", "240"))
SMALL, LARGE = 100, 40_000


class Search:
    def __init__(self):
        rng = np.random.default_rng(0)
        self.points = tf.constant(rng.normal(size=(64, 8)), tf.float32)

    @tf.function(input_signature=[tf.TensorSpec((None, 8), tf.float32)])
    def nearest(self, queries):
        distances = tf.reduce_sum(tf.square(queries[:, None] - self.points[None]), axis=2)
        return tf.reduce_mean(tf.reduce_min(distances, axis=1))


def answer(search, queries):
    return float(search.nearest(queries))


def main():
    rng, search, total = np.random.default_rng(1), Search(), 0.0
    for step in range(STEPS):
        size = LARGE if step == STEPS // 5 else SMALL
        total += answer(search, tf.constant(rng.normal(size=(size, 8)), tf.float32))
        if step % 60 == 0:
            print(f"{step} {total:.3f}", flush=True)


main()
