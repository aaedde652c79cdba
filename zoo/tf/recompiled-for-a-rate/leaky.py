import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

STEPS = int(os.environ.get("ZOO_STEPS", "40"))


class Schedule:
    """Halves the learning rate every few rounds."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.x = rng.normal(size=(64, 24)).astype("float32")
        self.y = self.x[:, :1]
        inputs = keras.Input((24,))
        hidden = keras.layers.Dense(48, activation="tanh")(inputs)
        self.model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
        self.model.compile(keras.optimizers.SGD(0.1), loss="mse")

    def round(self, number):
        rate = 0.1 * 0.5 ** (number // 8)
        self.model.compile(keras.optimizers.SGD(rate), loss="mse")
        return self.model.fit(self.x, self.y, batch_size=16, verbose=0).history["loss"][-1]


def main():
    schedule = Schedule()
    for number in range(STEPS):
        print(f"{number} {schedule.round(number):.4f}", flush=True)


main()
