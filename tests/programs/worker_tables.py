"""Situation 2.3: a pool whose workers each have the table that the module builds."""

import multiprocessing
import sys
import time

import numpy as np

TABLE = np.ones(5_000_000)  # 38 MiB


def look_up(index):
    time.sleep(0.02)
    return float(TABLE[index])


if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(3) as pool:
        print(sum(pool.map(look_up, range(300), chunksize=1)))
