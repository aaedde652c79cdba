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


class Folds:
    """One model for all folds; each begins with the weights of the first."""

    def __init__(self):
        self.model = build()
        self.start = self.model.get_weights()

    def run(self, x, y, number):
        self.model.set_weights(self.start)
        for variable in self.model.optimizer.variables:
            if "learning_rate" not in variable.path:
                variable.assign(keras.ops.zeros_like(variable))
        kept = np.arange(len(x)) % 4 != number % 4
        history = self.model.fit(x[kept], y[kept], batch_size=16, epochs=1, verbose=0)
        return history.history["loss"][-1]


def main():
    x, y = data()
    folds, scores = Folds(), []
    for number in range(STEPS):
        scores.append(folds.run(x, y, number))
        print(f"{number} {np.mean(scores):.4f}", flush=True)


main()
