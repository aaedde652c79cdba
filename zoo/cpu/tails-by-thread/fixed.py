"""Embeds a folder of (synthetic) recordings with a small audio network, several at a time."""

import argparse
import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import nn

RATE = 16_000
local = threading.local()


class Recording:
    def __init__(self, number, seconds):
        self.name = f"rec_{number:05d}.wav"
        self.seconds = seconds
        self.number = number

    def load(self):
        rng = np.random.default_rng(self.number)
        t = np.arange(int(self.seconds * RATE), dtype=np.float32) / RATE
        tone = sum(
            np.sin(2 * np.pi * f * t, dtype=np.float32)
            for f in rng.uniform(80, 4000, size=2).astype(np.float32)
        )
        return (tone + 0.1 * rng.standard_normal(len(t), dtype=np.float32)).astype(np.float32)


def spectrogram(wave, size=512, hop=128):
    frames = np.lib.stride_tricks.sliding_window_view(wave, size)[::hop]
    return np.abs(np.fft.rfft(frames * np.hanning(size).astype(np.float32))).astype(np.float32)


def workspace():
    """Per-thread scratch: the window, and the last frames seen (for cross-fading neighbours)."""
    if not hasattr(local, "tails"):
        local.tails = []
        local.hash = hashlib.blake2b(digest_size=8)
    return local


class AudioNet(nn.Module):
    def __init__(self, bins=257, width=24, out=32):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(bins, width, 5, stride=4),
            nn.ReLU(),
            nn.Conv1d(width, width, 5, stride=2),
            nn.ReLU(),
        )
        self.rnn = nn.GRU(width, out, batch_first=True)

    def forward(self, spec):
        h = self.conv(spec.transpose(1, 2))
        return self.rnn(h.transpose(1, 2))[1][0]


class Embedder:
    def __init__(self, workers, overlap=3):
        self.net = AudioNet().eval()
        self.pool = ThreadPoolExecutor(workers, thread_name_prefix="embed")
        self.overlap = overlap

    def smooth(self, spec, tails):
        if tails:
            before = tails[-1]
            spec[: len(before)] = 0.5 * (spec[: len(before)] + before)
        return spec

    def embed(self, recording):
        space = workspace()
        spec = self.smooth(spectrogram(recording.load()), space.tails)
        space.tails[:] = [spec[-self.overlap :].copy()]
        with torch.inference_mode():
            vector = self.net(torch.log1p(torch.from_numpy(spec))[None])[0]
        space.hash.update(vector.numpy().tobytes())
        return recording.name, vector

    def run(self, recordings, chunk=8):
        for start in range(0, len(recordings), chunk):
            yield from self.pool.map(self.embed, recordings[start : start + chunk])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recordings", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    embedder = Embedder(args.workers)
    mean = torch.zeros(32)
    recordings = [Recording(i, args.seconds) for i in range(args.recordings)]
    for done, (name, vector) in enumerate(embedder.run(recordings), 1):
        mean += (vector - mean) / done
        if done % 16 == 0:
            print(f"{done}/{args.recordings} {name} |mean|={mean.norm().item():.3f}")


if __name__ == "__main__":
    main()
