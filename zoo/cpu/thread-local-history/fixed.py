"""Augments images in a pool of threads; each thread has its own random numbers and scratch."""

import os
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
scratch = threading.local()


def prepare():
    scratch.random = np.random.default_rng(threading.get_ident() % 1000)
    scratch.masks = deque(maxlen=4)


def smooth_mask(size):
    coarse = scratch.random.random((8, 8), dtype=np.float32)
    return np.kron(coarse, np.ones((size // 8, size // 8), dtype=np.float32))


def augment(image):
    mask = smooth_mask(image.shape[0])
    scratch.masks.append(mask)
    blend = np.mean(list(scratch.masks), axis=0)
    picture = image * blend
    for threshold in np.linspace(0.5, 4.0, 12):
        spectrum = np.fft.rfft2(picture)
        picture = np.fft.irfft2(spectrum * (np.abs(spectrum) > threshold))
    return picture.astype(np.float32)


def main():
    random = np.random.default_rng(0)
    total = 0.0
    with ThreadPoolExecutor(2, initializer=prepare) as pool:
        for step in range(1, STEPS + 1):
            images = [random.random((128, 128), dtype=np.float32) for _ in range(3)]
            total += sum(float(result.mean()) for result in pool.map(augment, images))
            if step % 10 == 0:
                print(f"batch {step}: mean {total / (3 * step):.4f}")


if __name__ == "__main__":
    main()
