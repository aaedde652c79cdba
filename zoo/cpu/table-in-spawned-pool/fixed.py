"""Looks up embeddings in a pool of spawned processes; no framework."""

import multiprocessing
import os
import tempfile

import numpy as np

STEPS = int(os.environ.get("ZOO_STEPS", "240"))


def open_table(path):
    global table
    table = np.load(path, mmap_mode="r")


def nearest(word):
    distance = ((table - table[word]) ** 2).sum(axis=1)
    return int(np.argsort(distance)[1])


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table.npy")
        rows = np.random.default_rng(0).standard_normal((40_000, 96))
        np.save(path, rows.astype(np.float32))
        context = multiprocessing.get_context("spawn")
        with context.Pool(2, initializer=open_table, initargs=(path,)) as pool:
            for done, word in enumerate(pool.imap(nearest, range(STEPS), chunksize=4), 1):
                if done % 60 == 0:
                    print(f"{done} words, last {word}")


if __name__ == "__main__":
    main()
