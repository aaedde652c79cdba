"""Extracts features from many recordings with a pool of processes; no framework."""

import os
from concurrent.futures import ProcessPoolExecutor

import numpy as np

STEPS = int(os.environ.get("ZOO_STEPS", "600"))
SPECTRA = {}


def spectrum(clip, offset):
    key = (clip, offset)
    if key not in SPECTRA:
        sound = np.random.default_rng(clip).standard_normal(16_384)
        frames = np.lib.stride_tricks.sliding_window_view(sound, 512)[offset::64]
        SPECTRA[key] = np.abs(np.fft.rfft(frames * np.hanning(512))).astype(np.float32)
    return SPECTRA[key]


def features(clip):
    power = np.stack([spectrum(clip, offset)[:240].mean(0) for offset in (0, 32)])
    for _ in range(3):
        power = np.log1p(power @ np.cos(np.outer(np.arange(257), np.arange(257))))
    return float(np.nan_to_num(power).mean())


def main():
    total = 0.0
    with ProcessPoolExecutor(2) as pool:
        for done, value in enumerate(pool.map(features, range(STEPS)), 1):
            total += value
            if done % 100 == 0:
                print(f"{done} recordings, mean {total / done:.3f}")


if __name__ == "__main__":
    main()
