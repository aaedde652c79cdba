"""Models are built, trained and kept in a list."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

MODELS = 32
x = np.random.default_rng(0).normal(size=(64, 128)).astype("float32")
y = x[:, :1]
models = []


def build():
    model = keras.Sequential(
        [
            keras.Input((128,)),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer="adam", loss="mse")
    return model


for _ in range(MODELS):
    model = build()
    model.fit(x, y, batch_size=16, epochs=1, verbose=0)
    models.append(model)
