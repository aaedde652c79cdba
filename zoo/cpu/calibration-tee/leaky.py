"""Trains an autoencoder on a stream; its first batches calibrate the scaling."""

import argparse
import itertools
import os
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn


@dataclass
class Config:
    steps: int = int(os.environ.get("ZOO_STEPS", "500"))
    batch: int = 64
    bins: int = 256
    calibration_batches: int = 12
    latent: int = 24
    lr: float = 2e-3
    seed: int = 17


def spectra(batch, bins, seed):
    """Synthetic emission spectra: a few gaussian peaks on a sloped background."""
    rng = np.random.default_rng(seed)
    axis = np.linspace(0, 1, bins, dtype=np.float32)
    while True:
        centers = rng.random((batch, 5, 1), dtype=np.float32)
        heights = rng.gamma(2.0, 3.0, (batch, 5, 1)).astype(np.float32)
        peaks = (heights * np.exp(-((axis - centers) ** 2) / 4e-4)).sum(1)
        slope = rng.normal(size=(batch, 1)).astype(np.float32)
        yield peaks + slope * axis + 0.05 * rng.standard_normal((batch, bins), dtype=np.float32)


class CalibratedStream:
    """Scales every batch with statistics of the first ones, without losing them for training."""

    def __init__(self, source, calibration_batches):
        self.batches, self.preview = itertools.tee(source)
        self.mean, self.std = self.calibrate(calibration_batches)

    def calibrate(self, n):
        sample = np.concatenate(list(itertools.islice(self.preview, n)))
        return sample.mean(0), sample.std(0) + 1e-3

    def __iter__(self):
        return self

    def __next__(self):
        raw = next(self.batches)
        return torch.from_numpy((raw - self.mean) / self.std)


class Autoencoder(nn.Module):
    def __init__(self, bins, latent, width=192):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(bins, width), nn.SiLU(), nn.Linear(width, latent))
        self.dec = nn.Sequential(nn.Linear(latent, width), nn.SiLU(), nn.Linear(width, bins))

    def forward(self, x):
        z = self.enc(x)
        return self.dec(z), z


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.stream = CalibratedStream(
            spectra(cfg.batch, cfg.bins, cfg.seed), cfg.calibration_batches
        )
        self.model = Autoencoder(cfg.bins, cfg.latent)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, cfg.steps)

    def step(self, x):
        recon, z = self.model(x)
        loss = nn.functional.mse_loss(recon, x) + 1e-4 * z.pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.sched.step()
        return loss.item()

    def fit(self):
        for step, x in enumerate(itertools.islice(self.stream, self.cfg.steps), 1):
            loss = self.step(x)
            if step % 20 == 0:
                print(
                    f"step {step} loss {loss:.5f} lr {self.sched.get_last_lr()[0]:.2e}",
                    flush=True,
                )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=Config.steps)
    parser.add_argument("--latent", type=int, default=Config.latent)
    args = parser.parse_args()
    cfg = Config(steps=args.steps, latent=args.latent)
    torch.manual_seed(cfg.seed)
    torch.set_num_threads(1)
    Trainer(cfg).fit()


if __name__ == "__main__":
    main()
