"""Takes four megabytes a step until the kernel says no."""

import time

import leakscope

kept = []
while True:
    kept.append(b"x" * (4 << 20))
    leakscope.step()
    time.sleep(0.01)
