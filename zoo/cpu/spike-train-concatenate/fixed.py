"""Simulates a network of leaky integrate-and-fire neurons in NumPy, in chunks of time."""

import os

import numpy as np

STEPS = int(os.environ.get("ZOO_STEPS", "200"))
NEURONS = 64


class Recorder:
    def __init__(self):
        self.trace = np.empty((0, NEURONS))

    def record(self, voltages):
        self.trace = np.concatenate([self.trace, voltages])[-600:].copy()

    def rate(self, window=600):
        return float((self.trace[-window:] > 0.95).mean())


def simulate(voltage, weights, random, length=60):
    rows = np.empty((length, NEURONS))
    for moment in range(length):
        fired = voltage > 1.0
        voltage = np.where(fired, 0.0, 0.95 * voltage)
        voltage = voltage + weights @ fired + 0.1 * random.standard_normal(NEURONS) + 0.04
        rows[moment] = voltage
    return voltage, rows


def main():
    random = np.random.default_rng(0)
    weights = 0.05 * random.standard_normal((NEURONS, NEURONS))
    voltage = random.random(NEURONS)
    recorder = Recorder()
    for step in range(1, STEPS + 1):
        voltage, rows = simulate(voltage, weights, random)
        recorder.record(rows)
        spectrum = np.abs(np.fft.rfft(np.tile(rows, (200, 1)), axis=0)).mean(1)
        if step % 10 == 0:
            print(f"chunk {step}: rate {recorder.rate():.3f}, peak {int(spectrum.argmax())}")


if __name__ == "__main__":
    main()
