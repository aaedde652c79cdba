"""A small Keras model; a step is a `fit` of 100 batches: about 2 ms a batch."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from in_turns import run_in_turns

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((256,)), keras.layers.Dense(512), keras.layers.Dense(10)])
model.compile("adam", "mse")
x = np.ones((6_400, 256), "float32")
y = np.ones((6_400, 10), "float32")


def step():
    model.fit(x, y, batch_size=64, shuffle=False, verbose=0)


run_in_turns(step)
