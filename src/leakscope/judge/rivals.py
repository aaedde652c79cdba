"""Levels in, Contest out: does anything but a lasting drift explain this as well?

Each rival is a small regression: a constant, a saturating rise, a rise that stopped, and
the same with a drift, all with a few free jumps, all under noise that may remember its
past. The drift wins only if the best explanation with one is clearly more likely than
the best without.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope.judge.levels import Levels
from leakscope.judge.track import Numbers

MEMORIES = (0.0, 0.4, 0.7, 0.9)
"""Correlations of neighbouring noise that are tried; the likeliest counts, for every rival."""

TIME_CONSTANTS = (0.04, 0.07, 0.11, 0.17, 0.26, 0.38, 0.5)
"""Of a saturating rise, in spans of the judged part."""

KNEES = (0.15, 0.25, 0.35, 0.45, 0.55, 0.65)
"""Where a rise may have stopped or begun, in spans of the judged part."""

INEXACT_SHARE = 0.01
"""No rival is meant more exactly than this share of the range it explains; without it a
counter without noise refutes every rival whose curve is not to the byte its own."""

JUMP_PRICE = 2.0
TERM_PRICE = 1.0
"""Prices in units of log(levels): a jump has a place and a size, a term one number."""


@dataclass(frozen=True)
class Contest:
    """How the best explanation with a drift compares with the best without."""

    lead: float
    """Twice the log likelihood ratio, less the prices: above 0 the drift explains better."""
    drift: str
    harmless: str
    slope: float
    slope_error: float
    freedom: float
    memory: float
    noise: float
    """Standard deviation of the levels around the winning drift."""
    drift_jumps: int
    harmless_jumps: int


def contest(levels: Levels, most_jumps: int = 3) -> Contest:
    """The drift against its rivals on these levels."""
    return _Ring(levels).hold(min(most_jumps, len(levels.x) // 6))


class _Ring:
    """The dictionary of terms over one set of levels, and the elimination over it."""

    def __init__(self, levels: Levels) -> None:
        self.levels = levels
        k = len(levels.x)
        self.k = k
        u = (levels.x - levels.x[0]) / max(levels.span, 1e-300)
        index = np.arange(k)
        self.base = levels.columns()
        edges = {edge for stretch in levels.stretches for edge in stretch}
        knees = np.asarray(KNEES)
        times = np.asarray(TIME_CONSTANTS)
        self.names = (
            ["line"]
            + [f"exp {t:g}" for t in times]
            + [f"cap {c:g}" for c in knees]
            + [f"late {c:g}" for c in knees]
        )
        terms = np.column_stack(
            [
                u,
                1 - np.exp(-u[:, None] / times),
                np.minimum(u[:, None], knees) ,
                np.maximum(u[:, None] - knees, 0),
            ]
        )
        self.steps = np.asarray(
            [s for s in range(2, k - 1) if s not in edges], dtype=int
        )
        step_columns = (index[:, None] >= self.steps).astype(float)
        self.terms = terms
        self.first_step = len(self.base) + terms.shape[1]
        self.columns = np.column_stack([*self.base, terms, step_columns, levels.y])
        # Offsets and scale of y are taken out for the sake of the arithmetic only.
        self.columns[:, -1] -= levels.y.mean()
        fit, *_ = np.linalg.lstsq(np.column_stack(self.base), self.columns[:, -1], rcond=None)
        rest = self.columns[:, -1] - np.column_stack(self.base) @ fit
        self.floor = max(levels.grain, INEXACT_SHARE * float(np.ptp(rest)), 1e-300)
        self.grams = np.stack([_white(self.columns, m) for m in MEMORIES])
        self.grams = np.einsum("rki,rkj->rij", self.grams, self.grams)
        self.full_diagonal = np.einsum("rii->ri", self.grams).copy()

    def hold(self, most_jumps: int) -> Contest:
        base = len(self.base)
        gram = self.grams.copy()
        for column in range(base):
            _eliminate(gram, np.full(len(MEMORIES), column))
        exp_at = base + 1
        cap_at = exp_at + len(TIME_CONSTANTS)
        late_at = cap_at + len(KNEES)
        line = base
        entries: list[tuple[str, bool, tuple[int, ...]]] = [("constant", False, ())]
        entries += [("saturating", False, (exp_at + i,)) for i in range(len(TIME_CONSTANTS))]
        entries += [("capped", False, (cap_at + i,)) for i in range(len(KNEES))]
        entries += [("line", True, (line,))]
        entries += [("late", True, (late_at + i,)) for i in range(len(KNEES))]
        entries += [("saturating + line", True, (exp_at + i, line)) for i in range(len(TIME_CONSTANTS))]
        entries += [("knee", True, (cap_at + i, line)) for i in range(len(KNEES))]
        scored: list[tuple[float, str, bool, tuple[int, ...], int]] = []
        for name, has_drift, columns in entries:
            rss = self._rss(gram, columns)
            if rss is None:
                continue
            for r in range(len(MEMORIES)):
                scored.append(
                    (self._score(rss[r], r, len(columns) + (name != "line" and len(columns) > 0), 0), name, has_drift, columns, r)
                )
        keep: list[tuple[str, bool, tuple[int, ...], int]] = []
        for kind in {e[0] for e in entries}:
            for r in range(len(MEMORIES)):
                best = sorted(s for s in scored if s[1] == kind and s[4] == r)[:1]
                keep += [(s[1], s[2], s[3], s[4]) for s in best]
        batch = np.stack([gram[r] for _, _, _, r in keep])
        width = max(len(c) for _, _, c, _ in keep)
        for depth in range(width):
            rows = np.asarray([i for i, e in enumerate(keep) if len(e[2]) > depth])
            pivots = np.asarray([keep[i][2][depth] for i in rows])
            part = batch[rows]
            _eliminate(part, pivots)
            batch[rows] = part
        memory = np.asarray([r for *_, r in keep])
        taken: list[list[int]] = [[] for _ in keep]
        results: list[tuple[float, int, int]] = []
        for jumps in range(most_jumps + 1):
            for i, (name, _, columns, r) in enumerate(keep):
                if jumps > _most_jumps(name, most_jumps):
                    continue
                price = len(columns) + (name != "line" and len(columns) > 0)
                results.append((self._score(batch[i, -1, -1], r, price, jumps), i, jumps))
            if jumps == most_jumps or len(self.steps) == 0:
                break
            diagonal = np.einsum("rii->ri", batch)[:, self.first_step : -1]
            allowed = diagonal > 1e-6 * self.full_diagonal[memory][:, self.first_step : -1]
            gain = np.where(
                allowed, batch[:, self.first_step : -1, -1] ** 2 / np.where(allowed, diagonal, 1), 0
            )
            pick = gain.argmax(axis=1)
            for i, p in enumerate(pick):
                taken[i].append(self.first_step + int(p))
            _eliminate(batch, self.first_step + pick)
        drift = min(r for r in results if keep[r[1]][1])
        harmless = min(r for r in results if not keep[r[1]][1])
        name, _, columns, r = keep[drift[1]]
        jumps_in = taken[drift[1]][: drift[2]]
        slope, error, freedom, noise = self._fit(columns, jumps_in, r)
        return Contest(
            harmless[0] - drift[0],
            name,
            keep[harmless[1]][0],
            slope,
            error,
            freedom,
            MEMORIES[r],
            noise,
            drift[2],
            harmless[2],
        )

    def _score(self, rss: float, r: int, terms: int, jumps: int) -> float:
        k = self.k
        price = (TERM_PRICE * terms + JUMP_PRICE * jumps) * np.log(k)
        return float(
            k * np.log(max(rss, 0.0) / k + self.floor**2) - np.log(1 - MEMORIES[r] ** 2) + price
        )

    def _rss(self, gram: Numbers, columns: tuple[int, ...]) -> Numbers | None:
        """Residual sums of squares per memory; rises that fall are no rise and drop out."""
        y = gram[:, -1, -1]
        if not columns:
            return y
        first = columns[0]
        a, g = gram[:, first, first], gram[:, first, -1]
        if len(columns) == 1:
            return np.where(g > 0, y - g * g / np.maximum(a, 1e-300), y)
        second = columns[1]
        b, c, h = gram[:, second, second], gram[:, first, second], gram[:, second, -1]
        det = np.maximum(a * b - c * c, 1e-12 * a * b + 1e-300)
        beta1, beta2 = (b * g - c * h) / det, (a * h - c * g) / det
        rss = y - beta1 * g - beta2 * h
        return np.where((beta2 > 0) & (beta1 > 0), rss, np.inf)

    def _fit(
        self, columns: tuple[int, ...], jumps: list[int], r: int
    ) -> tuple[float, float, float, float]:
        """Slope of the drift per step, its standard error, degrees of freedom, noise."""
        use = [*columns[::-1], *range(len(self.base)), *jumps]
        white = _white(self.columns[:, [*use, self.columns.shape[1] - 1]], MEMORIES[r])
        design, y = white[:, :-1], white[:, -1]
        inverse = np.linalg.pinv(design.T @ design)
        beta = inverse @ design.T @ y
        rest = y - design @ beta
        freedom = max(1.0, self.k - design.shape[1])
        variance = float(rest @ rest) / freedom
        span = max(self.levels.span, 1e-300)
        plain = self.columns[:, -1] - self.columns[:, use] @ beta
        return (
            float(beta[0]) / span,
            float(np.sqrt(variance * inverse[0, 0])) / span,
            freedom,
            float(np.sqrt(plain @ plain / freedom)),
        )


def _most_jumps(name: str, most_jumps: int) -> int:
    """Free jumps a rival may have beside the known ones.

    A curve with a free jump fits a plain line under noise, and nothing could be told apart
    (lab, seed 7: power on lines of 30 sigma falls from 98 to 93 %). Jumps large enough to
    matter are known before the contest.
    """
    return {"constant": most_jumps, "line": min(1, most_jumps)}.get(name, 0)


def _white(columns: Numbers, memory: float) -> Numbers:
    """Columns with the part of each row that its predecessor foretells taken out."""
    white = columns.copy()
    white[1:] -= memory * columns[:-1]
    white[0] *= np.sqrt(1 - memory * memory)
    return white


def _eliminate(batch: Numbers, pivots: np.ndarray) -> None:
    """Takes one column out of each matrix of the batch: what is left is what it cannot explain."""
    rows = np.arange(len(batch))
    row = batch[rows, pivots]
    pivot = row[rows, pivots]
    safe = pivot > 1e-300
    row = np.where(safe[:, None], row, 0)
    batch -= row[:, :, None] * (row / np.where(safe, pivot, 1)[:, None])[:, None, :]


def slope_of(levels: Levels, memory: float) -> float:
    """Slope per step of a line with the known jumps, and nothing else in the model."""
    k = len(levels.x)
    u = (levels.x - levels.x[0]) / max(levels.span, 1e-300)
    columns = [u, *levels.columns()]
    white = _white(np.column_stack([*columns, levels.y - levels.y.mean()]), memory)
    beta, *_ = np.linalg.lstsq(white[:, :-1], white[:, -1], rcond=None)
    return float(beta[0]) / max(levels.span, 1e-300)
