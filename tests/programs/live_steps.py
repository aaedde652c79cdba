"""Steps and keeps a little of each, until a file appears or somebody interrupts it."""

import os
import sys
import time

import leakscope

kept = []
print("started", os.isatty(1), flush=True)
try:
    while not os.path.exists(sys.argv[1]):
        kept.append(bytearray(20_000))
        leakscope.step()
        time.sleep(0.005)
except KeyboardInterrupt:
    print("interrupted once")
    sys.exit(5)
print("finished", file=sys.stderr)
sys.exit(7)
