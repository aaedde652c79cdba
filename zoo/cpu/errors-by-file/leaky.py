"""Checks and normalises sensor recordings in plain Python and the array module."""

import array
import math
import os
import random

STEPS = int(os.environ.get("ZOO_STEPS", "200"))


class BadRecordingError(ValueError):
    pass


def read_raw(number):
    source = random.Random(number)
    phase = source.random()
    samples = array.array("d", (math.sin(0.01 * n + phase) for n in range(24000)))
    if number % 2:
        samples[source.randrange(24000)] = math.inf
    return samples


def parse(number):
    samples = read_raw(number)
    peak = max(abs(value) for value in samples)
    if not math.isfinite(peak):
        raise BadRecordingError(f"recording {number} has no finite peak")
    return sum(value * value for value in samples) / (peak * peak * len(samples))


class Report:
    def __init__(self):
        self.energy = 0.0
        self.broken = {}

    def check(self, number):
        try:
            self.energy += parse(number)
        except BadRecordingError as error:
            self.broken[f"rec-{number:06d}.bin"] = error


def main():
    report = Report()
    for step in range(1, STEPS + 1):
        report.check(step)
        if step % 10 == 0:
            print(f"file {step}: energy {report.energy / step:.3f}")
    print(f"first broken: {next(iter(report.broken))}")


if __name__ == "__main__":
    main()
