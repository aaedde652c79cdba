import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

STEPS = int(os.environ.get("ZOO_STEPS", "40"))


def data(rows=64, features=32, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, features)).astype("float32")
    return x, x[:, :4].sum(axis=1, keepdims=True)


def build(units=64):
    model = keras.Sequential(
        [
            keras.Input((32,)),
            keras.layers.Dense(units, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer="adam", loss="mse")
    return model


def main():
    x, y = data()
    runs = []
    for number in range(STEPS):
        model = build(units=256)
        runs.append(model.fit(x, y, batch_size=32, epochs=1, verbose=0))
        del model
        keras.backend.clear_session()
        print(f"{number} {runs[-1].history['loss'][-1]:.4f}", flush=True)


main()
