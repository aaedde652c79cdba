"""Steps on while the recording's disk is full; `free FILE` makes room half way."""

import os
import sys
import time

import leakscope


def steps(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        leakscope.step()
        time.sleep(0.001)


steps(0.7)
if len(sys.argv) > 1:
    os.unlink(sys.argv[1])
    steps(1.0)
print("done")
sys.exit(6)
