import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

STEPS = int(os.environ.get("ZOO_STEPS", "480"))


def main():
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64), keras.layers.Dense(4)])
    rng, total = np.random.default_rng(0), 0.0
    for step in range(STEPS):
        x = rng.normal(size=(16, 64)).astype("float32")
        total += float(model.predict(x, verbose=0).mean())
        if step % 30 == 0:
            print(f"{step} {total:.4f}", flush=True)


main()
