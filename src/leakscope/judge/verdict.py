"""Series in, Verdict out (first, simple form: low envelope, rank trend, plateau test)."""

from __future__ import annotations

import numpy as np
from scipy import stats

from leakscope.model import Outcome, Rate, Series, Shape, Verdict


def _size(amount: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if abs(amount) < 1024:
            return f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.3g} GiB"


def judge(series: Series, *, smallest_that_matters: float = 0.0) -> Verdict:
    """The verdict on one series, with its rate, its shape and the reason."""
    x = np.asarray(series.steps, float)
    y = np.asarray(series.values, float)
    n = len(y)

    def say(
        outcome: Outcome, shape: Shape, because: str, rate: Rate, visible: float, first: int
    ) -> Verdict:
        return Verdict(
            series=series.key,
            outcome=outcome,
            shape=shape,
            because=because,
            bytes_per_step=rate,
            smallest_visible_bytes_per_step=visible,
            unit=series.unit,
            from_step=float(x[first]) if n else 0.0,
            to_step=float(x[-1]) if n else 0.0,
            grown_bytes=float(y[-1] - y[first]) if n else 0.0,
        )

    if n < 8:
        return say(
            Outcome.UNKNOWN,
            Shape.UNCLEAR,
            f"only {n} values; run at least 60 steps.",
            Rate(0.0, 0.0, 0.0),
            0.0,
            0,
        )
    first = n // 3 if n >= 20 else min(3, n - 8)
    floors = np.asarray([i for i in series.floors if i >= first], int)
    if len(floors) >= 5:
        tail_x, tail_y = x[floors], y[floors]
    else:
        tail_x, tail_y = x[first:], y[first:]
    windows = min(len(tail_x), 16)
    low_x = np.array([part.mean() for part in np.array_split(tail_x, windows)])
    low_y = np.array([part.min() for part in np.array_split(tail_y, windows)])
    slope, _, low, high = stats.theilslopes(low_y, low_x, alpha=0.98)
    rate = Rate(float(slope), float(min(low, slope)), float(max(high, slope)))
    tau = stats.kendalltau(low_x, low_y)
    rises = np.diff(low_y)
    up = np.maximum(rises, 0)
    several = up.sum() ** 2 / max(float((up**2).sum()), 1e-300)
    quarter = max(2, len(rises) // 4)
    goes_on = rises[-quarter:].mean() >= 0.3 * rises.mean()
    span = max(tail_x[-1] - tail_x[0], 1e-12)
    visible = 30.0 * float(np.std(np.diff(low_y))) / span
    if (
        tau.statistic > 0
        and tau.pvalue < 0.01
        and low > 0
        and several >= 2.5
        and goes_on
        and rate.high > smallest_that_matters
    ):
        because = f"grows by {_size(slope)} per step from step {tail_x[0]:g} to {tail_x[-1]:g}."
        return say(Outcome.GROWING, Shape.LINEAR, because, rate, visible, first)
    because = f"no lasting growth from step {tail_x[0]:g} to {tail_x[-1]:g}."
    return say(Outcome.STEADY, Shape.FLAT, because, rate, visible, first)
