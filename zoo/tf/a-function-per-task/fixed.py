import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

STEPS = int(os.environ.get("ZOO_STEPS", "240"))


@tf.function
def solve(x, rate):
    for _ in range(3):
        x = x - rate * tf.tanh(x)
    return tf.reduce_sum(x)


def main():
    total = 0.0
    for step in range(STEPS):
        total += float(solve(tf.ones((64, 16)), tf.constant(0.1 + 0.001 * step)))
        if step % 25 == 0:
            print(f"{step} {total:.3f}", flush=True)


main()
