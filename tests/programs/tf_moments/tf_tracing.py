"""Reads within everything that builds a graph, twenty times each."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from forced import look, tell

TIMES = int(os.environ.get("TIMES", "20"))
kept = [tf.random.stateless_normal((32, 32), (1, 2)) for _ in range(20)]
weights = tf.Variable(tf.ones((32, 4)) * 0.1)


def traced(i):
    @tf.function
    def step(x):
        look("trace")
        with tf.GradientTape() as tape:
            y = tf.tanh(x @ weights) * i
            look("trace, tape on")
            total = tf.reduce_sum(y)
        look("trace, tape off")
        return tape.gradient(total, weights)

    return float(tf.reduce_sum(step(kept[0])))


def branches(i):
    @tf.function
    def step(x):
        if tf.reduce_sum(x) > 0:
            look("branch")
            x = x + i
        else:
            look("other branch")
            x = x - i
        for _ in tf.range(3):
            look("loop")
            x = x * 0.5
        return tf.reduce_sum(tf.map_fn(lambda row: (look("map_fn"), tf.sin(row))[1], x))

    return float(step(kept[1]))


def lifted(i):
    made = []

    @tf.function
    def step(x):
        if not made:
            look("before a variable")
            made.append(tf.Variable(float(i)))
            look("after a variable")
        with tf.init_scope():
            look("init_scope")
        with tf.control_dependencies([made[0].assign_add(1.0)]):
            look("control dependencies")
            return tf.reduce_sum(x) * made[0]

    return [float(step(kept[2])) for _ in range(2)]


@tf.custom_gradient
def clipped(x):
    look("custom gradient, forward")

    def grad(upstream):
        look("custom gradient, backward")
        return tf.clip_by_value(upstream, -0.5, 0.5)

    return x * x, grad


def custom(i):
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(clipped(x) * i)
        return tape.gradient(y, x)

    with tf.GradientTape() as tape:
        tape.watch(kept[3])
        eager = tf.reduce_sum(clipped(kept[3]))
    return float(tf.reduce_sum(step(kept[3]))), float(tf.reduce_sum(tape.gradient(eager, kept[3])))


def old_graph(i):
    with tf.Graph().as_default() as graph:
        look("Graph.as_default")
        x = tf.compat.v1.placeholder(tf.float32, (None, 4))
        y = tf.reduce_sum(x * i)
        y = tf.compat.v1.py_func(lambda v: (look("py_func"), v)[1], [y], tf.float32)
        with tf.compat.v1.Session(graph=graph) as session:
            look("session")
            return float(session.run(y, {x: np.ones((2, 4))}))


class Halved(keras.layers.Layer):
    def build(self, shape):
        look("Keras build")
        self.scale = self.add_weight(shape=(), initializer="ones")

    def call(self, x):
        look("Keras call")
        return x * 0.5 * self.scale


class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.halved, self.dense = Halved(), keras.layers.Dense(1, kernel_initializer="ones")

    def call(self, x):
        return self.dense(self.halved(x))

    def train_step(self, data):
        look("Keras train_step")
        return super().train_step(data)


class Told(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        look("Keras callback")


def symbolic(i):
    inputs = keras.Input((4,))
    model = keras.Model(inputs, keras.layers.Dense(1, kernel_initializer="ones")(Halved()(inputs)))
    model.compile("sgd", "mse")
    x = np.ones((8, 4), "float32") * i
    history = model.fit(x, x[:, :1], batch_size=4, verbose=0, callbacks=[Told()], shuffle=False)
    own = Model()
    own.compile("sgd", "mse", jit_compile=False)
    more = own.fit(x, x[:, :1], batch_size=4, verbose=0, shuffle=False)
    told = float(model.predict(x, verbose=0).sum())
    return history.history["loss"][-1], more.history["loss"][-1], told


def compiled(i):
    @tf.function(jit_compile=True)
    def step(x):
        look("jit_compile")
        return tf.reduce_sum(tf.tanh(x) * i)

    return float(step(kept[4]))


for moment in (traced, branches, lifted, custom, old_graph, symbolic, compiled):
    for i in range(TIMES if moment is not symbolic else max(TIMES // 4, 1)):
        print(moment.__name__, i, moment(i), flush=True)
tell()
