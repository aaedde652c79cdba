"""Steps of each kind, as many as are asked for: `tf_steps.py fit|predict|call|eager|traced 30`."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

how, count = sys.argv[1], int(sys.argv[2])
x = np.ones((8, 4), "float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
optimizer = keras.optimizers.SGD(0.01)


def update():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x)))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss


if how == "fit":
    model.compile("sgd", "mse")
    rows = np.ones((8 * count, 4), "float32")
    model.fit(rows, rows[:, :2], batch_size=8, verbose=0)
elif how == "predict":
    for _ in range(count):
        model.predict(x, verbose=0)
elif how == "call":
    square = tf.function(lambda value: tf.reduce_sum(value * value))
    for _ in range(count):
        square(tf.constant(x))
elif how == "eager":
    for _ in range(count):
        update()
elif how == "traced":
    compiled = tf.function(update)
    for _ in range(count):
        compiled()
print("torch" in sys.modules)
