"""Reads within Python code that TensorFlow's own threads call, and while tapes are on."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from forced import look, looking_from_a_thread, tell

TIMES = int(os.environ.get("TIMES", "20"))
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration(), tf.config.LogicalDeviceConfiguration()],
)
kept = [tf.random.stateless_normal((32, 32), (1, 2)) for _ in range(20)]
tapes = []


def py_function(i):
    def inner(x):
        look("py_function")
        return tf.reduce_sum(x) * i

    @tf.function
    def step(x):
        y = tf.py_function(inner, [x], tf.float32)
        z = tf.numpy_function(lambda v: (look("numpy_function"), v * 2)[1], [y], tf.float32)
        return y + tf.reshape(z, ())

    with tf.GradientTape() as tape:
        tape.watch(kept[0])
        y = tf.py_function(inner, [kept[0]], tf.float32)
    return float(step(kept[0])), float(tf.reduce_sum(tape.gradient(y, kept[0])))


def datasets(i):
    def rows():
        for n in range(6):
            look("from_generator")
            yield np.full(4, n + i, "float32")

    def mapped(x):
        look("map")
        return tf.py_function(lambda v: (look("map, py_function"), v + 1)[1], [x], tf.float32)

    data = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec(4, tf.float32))
    data = data.map(mapped, num_parallel_calls=2, deterministic=True).batch(2).prefetch(2)
    total = 0.0
    for batch in data:
        look("iteration")
        total += float(tf.reduce_sum(batch))
    half_read = iter(data)
    next(half_read)
    look("half-read iterator")
    return total


def tape_on(i):
    x = kept[1] * float(i)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        look("tape on")
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(tf.tanh(x) ** 2)
            look("two tapes on")
        slope = inner.gradient(y, x)
        look("inner tape ended")
        with outer.stop_recording():
            look("recording stopped")
            tf.sin(x)
        z = tf.reduce_sum(slope * slope)
    look("tape ended")
    first = float(tf.reduce_sum(outer.gradient(z, x)))
    look("after gradient")
    second = float(tf.reduce_sum(outer.gradient(y, x)))
    tapes.append(outer)
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
        look("accumulator on")
        w = tf.reduce_sum(tf.sin(x))
    return first, second, float(forward.jvp(w)), len(tapes)


def not_watched(i):
    """What is computed after a read must not be on a tape that had ended."""
    x = tf.Variable(2.0 + i)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    look("ended")
    z = y * 3.0
    tapes.append(tape)
    return (
        tape.gradient(y, x).numpy(),
        tape.gradient(z, x),
        [v.name for v in tape.watched_variables()],
    )


def replicas(i):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        variable = tf.Variable(float(i))

    def replica():
        look("replica")
        with tf.GradientTape() as tape:
            y = variable * variable
        return tape.gradient(y, variable)

    @tf.function
    def step():
        return strategy.reduce("SUM", strategy.run(replica), axis=None)

    return float(step()), float(strategy.reduce("SUM", strategy.run(replica), axis=None))


def beside(i):
    total = 0.0
    with looking_from_a_thread("thread"):
        for n in range(20):
            with tf.GradientTape() as tape:
                tape.watch(kept[2])
                y = tf.reduce_sum(tf.tanh(kept[2] * float(n + i)))
            total += float(tf.reduce_sum(tape.gradient(y, kept[2])))

        @tf.function
        def step(x):
            for _ in range(20):
                x = tf.tanh(x)
            return tf.reduce_sum(x)

        total += float(step(kept[2]))
        for batch in tf.data.Dataset.range(40).batch(4).prefetch(2):
            total += float(tf.reduce_sum(batch))
    return total


for moment in (py_function, datasets, tape_on, not_watched, replicas, beside):
    for i in range(TIMES):
        print(moment.__name__, i, moment(i), flush=True)
tell()
