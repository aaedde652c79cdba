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


class Population:
    """Keeps the best weights, and one model to train."""

    def __init__(self):
        self.model = build(units=256)
        self.start = self.model.get_weights()
        self.best, self.weights = float("inf"), None

    def grow(self, x, y):
        self.model.set_weights(self.start)
        history = self.model.fit(x, y, batch_size=32, epochs=1, verbose=0)
        loss = history.history["loss"][-1]
        if loss < self.best:
            self.best, self.weights = loss, self.model.get_weights()
        return self.best


def main():
    x, y = data()
    population = Population()
    for number in range(STEPS):
        print(f"{number} {population.grow(x, y):.4f}", flush=True)


main()
