"""A pool of processes, each with a table that the module builds when it is imported."""

import multiprocessing
import sys
import time

import numpy as np

TABLE = np.random.default_rng(0).standard_normal(3_000_000)


def look_up(key):
    time.sleep(0.02)
    return float(TABLE[key])


if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(3) as pool:
        print(sum(pool.map(look_up, range(180), chunksize=2)) > -1e9)
