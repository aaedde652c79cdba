"""Reads while another tensor is being made from a value, and while operations are pending."""

import os
import sys
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from forced import look, tell
from tensorflow.python.eager import context

TIMES = int(os.environ.get("TIMES", "20"))
kept = [tf.ones((8, 8)) * float(n) for n in range(4)]


class Slow:
    """A value that takes its time to become an array, or never does."""

    def __init__(self, value, fails=False):
        self.value, self.fails = value, fails

    def __array__(self, dtype=None, copy=None):
        look("conversion")
        time.sleep(0.02)
        if self.fails:
            raise TypeError("no array")
        return np.full(3, self.value, "float32")


def converting(i):
    made = []

    def make():
        made.append(float(tf.reduce_sum(tf.constant(Slow(i)))))
        try:
            tf.constant(Slow(i, fails=True))
        except TypeError as error:
            made.append(str(error))

    thread = threading.Thread(target=make)
    thread.start()
    while thread.is_alive():
        look("another thread converts")
    thread.join()
    return made


def pending(i):
    """In asynchronous mode the operation's own result is pending while its Python code runs."""
    results = []

    def slow(x):
        look("pending")
        time.sleep(0.01)
        return x + i

    x = kept[1]
    for _ in range(3):
        x = tf.py_function(slow, [x], tf.float32)
        results.append(x)
        look("operations pending")
    return float(tf.reduce_sum(results[-1]))


for i in range(TIMES):
    print("converting", i, converting(i), flush=True)
context.context().execution_mode = context.ASYNC
for i in range(TIMES):
    print("pending", i, pending(i), flush=True)
context.async_wait()
tell()
sys.stdout.flush()
