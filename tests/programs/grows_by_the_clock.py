"""Keeps 100 KB every 10 ms until a file appears; knows nothing of steps."""

import os
import sys
import time

kept = []
print("started", flush=True)
while not os.path.exists(sys.argv[1]):
    kept.append(os.urandom(100_000))
    time.sleep(0.01)
print("finished")
sys.exit(7)
