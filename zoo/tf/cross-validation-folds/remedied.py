import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import ops

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


def blank_custom_gradients():
    """Forget the tensors that closures in TensorFlow's gradient registry captured, and with them
    the graphs of functions traced so far. The entries stay: gradients can still be taken."""
    for name, entry in ops.gradient_registry._registry.items():
        if name.startswith("CustomGradient-"):
            outer = entry["type"]
            cells = dict(zip(outer.__code__.co_freevars, outer.__closure__, strict=True))
            inner = cells["tape_grad_fn"].cell_contents
            cells = dict(zip(inner.__code__.co_freevars, inner.__closure__, strict=True))
            result = cells["result"]
            result.cell_contents = tf.nest.map_structure(lambda _: None, result.cell_contents)


def fold(x, y, number):
    model = build()
    kept = np.arange(len(x)) % 4 != number % 4
    history = model.fit(x[kept], y[kept], batch_size=16, epochs=1, verbose=0)
    score = history.history["loss"][-1]
    del model, history
    keras.backend.clear_session()
    blank_custom_gradients()
    return score


def main():
    x, y = data()
    scores = []
    for number in range(STEPS):
        scores.append(fold(x, y, number))
        print(f"{number} {np.mean(scores):.4f}", flush=True)


main()
