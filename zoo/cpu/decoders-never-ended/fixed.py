"""Reads a stream of clips through one decoder process after the other; no framework."""

import os
import subprocess
import sys
import time

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
DECODER = (
    "import sys\ntable = bytearray(6 << 20)\nfor line in sys.stdin: print(len(line), flush=True)"
)
EVERY = 5


class Stream:
    def __init__(self):
        self.decoder = None

    def open(self):
        if self.decoder is not None:
            self.decoder.communicate()
        self.decoder = subprocess.Popen(
            [sys.executable, "-S", "-c", DECODER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self, clip):
        self.decoder.stdin.write(clip + "\n")
        self.decoder.stdin.flush()
        return int(self.decoder.stdout.readline())


def main():
    stream = Stream()
    total = 0
    for step in range(STEPS):
        if step % EVERY == 0:
            stream.open()
        total += stream.read(f"clip {step:05d}")
        time.sleep(0.015)
        if (step + 1) % 50 == 0:
            print(f"{step + 1} clips, {total} bytes")


if __name__ == "__main__":
    main()
