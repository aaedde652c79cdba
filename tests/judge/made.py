"""Series for tests: positions and values in, a Series out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from leakscope.model import Series, SeriesKey

MIB = 2.0**20


def series(
    values: Iterable[float],
    *,
    steps: Iterable[float] | None = None,
    floors: Sequence[int] = (),
    is_exact: bool = False,
    resolution: float = 0.0,
    process: str = "1-1",
) -> Series:
    """A series of bytes at whole steps unless others are given."""
    y = tuple(float(v) for v in values)
    x = tuple(float(s) for s in steps) if steps is not None else tuple(map(float, range(len(y))))
    key = SeriesKey("heap.in_use_bytes", process)
    return Series(key, "bytes", x, y, tuple(floors), is_exact, resolution)


def noise(n: int, seed: int = 0, sd: float = MIB) -> np.ndarray:
    """The same normal noise every time."""
    return np.random.default_rng(seed).normal(0, sd, n)


def saw(n: int, period: int, height: float) -> tuple[np.ndarray, list[int]]:
    """A saw-tooth and the indices of its floors."""
    at = np.arange(n)
    return height * (at % period) / period, [int(i) for i in at if i % period == 0]
