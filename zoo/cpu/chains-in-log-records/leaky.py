"""Toy DDPM on 16x16 shapes, with a debug log that is written only when something goes wrong."""

import copy
import logging
import logging.handlers
import math
import pathlib
import tempfile

import torch
from torch import nn

log = logging.getLogger("ddpm")

config = {
    "steps": 400,
    "batch": 16,
    "timesteps": 60,
    "width": 12,
    "lr": 1e-3,
    "ema": 0.995,
    "preview_every": 10,
}


def setup_logging():
    """Keep debug records in memory; an ERROR flushes them to the file."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ddpm-"))
    target = logging.FileHandler(folder / "debug.log", delay=True)
    memory = logging.handlers.MemoryHandler(
        capacity=100_000, flushLevel=logging.ERROR, target=target, flushOnClose=False
    )
    log.setLevel(logging.DEBUG)
    log.addHandler(memory)
    log.propagate = False


class Shapes:
    def __init__(self, side=16, seed=0):
        self.gen = torch.Generator().manual_seed(seed)
        self.r = torch.arange(side)

    def batch(self, n):
        lo = torch.randint(1, 8, (n, 2), generator=self.gen)
        hi = lo + torch.randint(3, 8, (n, 2), generator=self.gen)
        rows = (self.r >= lo[:, :1]) & (self.r < hi[:, :1])
        cols = (self.r >= lo[:, 1:]) & (self.r < hi[:, 1:])
        return (rows[:, None, :, None] & cols[:, None, None, :]).float() * 2 - 1


class Denoiser(nn.Module):
    def __init__(self, width, timesteps):
        super().__init__()
        self.time = nn.Embedding(timesteps, width)
        self.inp = nn.Conv2d(1, width, 3, padding=1)
        self.mid = nn.ModuleList(
            [nn.Conv2d(width, width, 3, padding=d, dilation=d) for d in (1, 2, 4)]
        )
        self.norm = nn.ModuleList([nn.GroupNorm(4, width) for _ in self.mid])
        self.out = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t)[:, :, None, None]
        for conv, norm in zip(self.mid, self.norm, strict=False):
            h = h + torch.nn.functional.silu(norm(conv(h)))
        return self.out(h)


class Diffusion:
    def __init__(self, timesteps):
        self.timesteps = timesteps
        s = torch.arange(timesteps + 1) / timesteps
        bar = torch.cos((s + 0.01) / 1.01 * math.pi / 2) ** 2
        self.bar = (bar / bar[0])[1:].clamp(min=1e-3)

    def noise(self, x, t, eps):
        a = self.bar[t][:, None, None, None]
        return a.sqrt() * x + (1 - a).sqrt() * eps

    @torch.no_grad()
    def preview(self, model, n=32, hops=6):
        x = torch.randn(n, 1, 16, 16)
        chain = []
        for t in torch.linspace(self.timesteps - 1, 0, hops).long():
            a = self.bar[t]
            eps = model(x, t.expand(n))
            clean = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-1, 1)
            prev = self.bar[max(0, int(t) - self.timesteps // hops)]
            x = prev.sqrt() * clean + (1 - prev).sqrt() * eps
            chain.append(clean)
        return torch.stack(chain)


@torch.no_grad()
def blend(average, model, decay):
    for a, p in zip(average.parameters(), model.parameters(), strict=False):
        a.lerp_(p, 1 - decay)


def main(cfg):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    setup_logging()
    data, process = Shapes(), Diffusion(cfg["timesteps"])
    model = Denoiser(cfg["width"], cfg["timesteps"])
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])
    for step in range(1, cfg["steps"] + 1):
        x = data.batch(cfg["batch"])
        t = torch.randint(0, cfg["timesteps"], (len(x),))
        eps = torch.randn_like(x)
        loss = (model(process.noise(x, t, eps), t) - eps).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        blend(average, model, cfg["ema"])
        if not math.isfinite(loss.item()):
            log.error("loss is %s at step %d", loss.item(), step)
            raise SystemExit(1)
        if step % cfg["preview_every"] == 0:
            chain = process.preview(average)
            log.debug("step %d denoising chain %s", step, chain)
        if step % 20 == 0:
            print(f"{step}/{cfg['steps']} mse {loss.item():.4f} preview {chain.std().item():.3f}")


if __name__ == "__main__":
    main(config)
