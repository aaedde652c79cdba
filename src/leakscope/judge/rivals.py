"""Levels in, Contest out: does anything but a lasting drift explain this as well?

Each rival is a small regression: a constant, a saturating rise, a rise that stopped, and
the same with a drift, all under noise that may remember its past. The drift wins only if
the best explanation with one is clearly more likely than the best without.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.judge.levels import Levels
from leakscope.judge.track import Numbers

MEMORIES = (0.0, 0.4, 0.7, 0.9)
"""Correlations of neighbouring noise that are tried; the likeliest counts, for every rival."""

TIME_CONSTANTS = (0.04, 0.07, 0.11, 0.17, 0.24, 0.32, 0.42, 0.55)
"""Of a saturating rise, in spans of the judged part. At 0.55 the last slope is a sixth of the
first; a longer one looks like a line (lab, seed 7, 300 series of 120 points: with 1.0 in the
list 96 instead of 100 % of the lines are found, under a warm-up 88 instead of 96)."""

KNEES = (0.15, 0.25, 0.35, 0.45, 0.55, 0.65)
"""Where a rise may have stopped or begun, in spans of the judged part."""

INEXACT_SHARE = 0.01
"""No rival is meant more exactly than this share of the range it explains; without it a
counter without noise refutes every rival whose curve is not to the byte its own."""

FEWEST_FOR_CURVES = 10
"""With fewer levels than this a drift must be a plain line to be believed."""

CONSTANT_JUMPS = 3
LINE_JUMPS = 1
"""Free jumps beside the known ones. A curve with free jumps fits a plain line under noise (lab,
seed 7: with three for every rival 4 of 150 lines of 120 points led by less than 6). Jumps
large enough to matter are known before the contest."""

LEVELS_PER_JUMP = 6
"""One free jump needs this many levels."""

JUMP_PRICE = 2.0
TERM_PRICE = 1.0
"""Prices in units of log(levels), as in Schwarz's criterion: a jump has a place and a size,
a curve a height and a time."""

CURVED = ("saturating + line", "knee")
"""Names of the drifts that something which ends is a part of."""

TINY = 1e-300


@dataclass(frozen=True)
class Rival:
    """One explanation and how well it does."""

    name: str
    score: float
    """Minus twice the log likelihood, plus the prices: lower is better."""
    memory: float
    terms: tuple[int, ...] = ()
    jumps: tuple[int, ...] = ()
    """Columns of the dictionary that it uses."""
    time: float = 0.0
    """Time constant of a saturating rise or place of a knee, in spans."""
    height: float = 0.0
    """Of the saturating or capped rise."""


@dataclass(frozen=True)
class Contest:
    """How the best explanation with a drift compares with the best without."""

    drift: Rival
    harmless: Rival
    slope: float
    """Of the drift at the end of the judged part, per step."""
    slope_error: float
    freedom: float
    noise: float
    """Standard deviation of the levels around the winning drift."""
    fitted: Numbers
    """The winning drift at each level."""
    leverage: float
    """Error of the slope for noise of one byte in each level, independent of the others."""

    @property
    def lead(self) -> float:
        """How much better the drift explains; above 0 it is the likelier."""
        return self.harmless.score - self.drift.score


def contest(levels: Levels) -> Contest:
    """The best drift and the best rival on these levels."""
    return _Ring(levels).hold()


def slope_of(levels: Levels, memory: float) -> tuple[float, float]:
    """Slope per step of a line with the known jumps, and its standard error."""
    span = max(levels.span, TINY)
    columns = [(levels.x - levels.x[0]) / span, *levels.columns()]
    slope, error, _, _ = _fit(np.column_stack([*columns, levels.y - levels.y.mean()]), memory)
    return slope / span, error / span


class _Ring:
    """The dictionary of terms over one set of levels, and what each explains."""

    def __init__(self, levels: Levels) -> None:
        self.levels = levels
        self.k = k = len(levels.x)
        self.span = max(levels.span, TINY)
        u = ((levels.x - levels.x[0]) / self.span)[:, None]
        base = levels.columns()
        edges = {edge for stretch in levels.stretches for edge in stretch}
        places = np.asarray([s for s in range(2, k - 1) if s not in edges], dtype=int)
        parts = [
            np.column_stack(base),
            u,
            1 - np.exp(-u / np.asarray(TIME_CONSTANTS)),
            np.minimum(u, KNEES),
            np.maximum(u - np.asarray(KNEES), 0),
            (np.arange(k)[:, None] >= places).astype(float),
            (levels.y - levels.y.mean())[:, None],
        ]
        self.columns = np.hstack(parts)
        ends = np.cumsum([part.shape[1] for part in parts])
        self.base, self.line = int(ends[0]), int(ends[0])
        self.curves, self.caps, self.lates, self.steps, self.y = (int(e) for e in ends[1:6])
        white = np.stack([_white(self.columns, memory) for memory in MEMORIES])
        self.gram = white.transpose(0, 2, 1) @ white
        self.before = np.einsum("rii->ri", self.gram).copy()
        """Squared lengths of all columns before the known jumps are taken out."""
        for column in range(self.base):
            _eliminate(self.gram, np.full(len(MEMORIES), column))
        rest = _fit(np.hstack([parts[0], parts[-1]]), 0.0)[3]
        self.floor = max(levels.grain, INEXACT_SHARE * float(np.ptp(rest)), 1e-150)

    def hold(self) -> Contest:
        jumps = self.k // LEVELS_PER_JUMP
        harmless = [
            *self._with_jumps("constant", (), min(CONSTANT_JUMPS, jumps)),
            *self._single("saturating", self.curves, TIME_CONSTANTS),
            *self._single("capped", self.caps, KNEES),
        ]
        drift = self._with_jumps("line", (self.line,), min(LINE_JUMPS, jumps))
        if self.k >= FEWEST_FOR_CURVES:
            drift += self._single("late", self.lates, KNEES)
            drift += self._double("saturating + line", self.curves, TIME_CONSTANTS)
            drift += self._double("knee", self.caps, KNEES)
        best = min(drift, key=lambda rival: rival.score)
        used = [*best.terms[::-1], *range(self.base), *best.jumps, self.y]
        slope, error, freedom, rest = _fit(self.columns[:, used], best.memory)
        design = self.columns[:, used[:-1]]
        leverage = np.sqrt(max(np.linalg.pinv(design.T @ design)[0, 0], 0.0))
        return Contest(
            best,
            min(harmless, key=lambda rival: rival.score),
            slope / self.span,
            error / self.span,
            freedom,
            float(np.sqrt(rest @ rest / freedom)),
            self.levels.y - rest,
            float(leverage) / self.span,
        )

    def _score(self, rss: Numbers, prices: float) -> Numbers:
        """Per memory and candidate; the last axis of `rss` runs over candidates."""
        memory = np.asarray(MEMORIES).reshape(-1, *[1] * (rss.ndim - 1))
        likelihood = self.k * np.log(np.maximum(rss, 0) / self.k + self.floor**2)
        return np.asarray(likelihood - np.log(1 - memory**2) + prices * np.log(self.k))

    def _with_jumps(self, name: str, terms: tuple[int, ...], most: int) -> list[Rival]:
        """The rival with 0 to `most` free jumps, each placed where it explains the most."""
        gram = self.gram.copy()
        for term in terms:
            _eliminate(gram, np.full(len(MEMORIES), term))
        taken: list[list[int]] = [[] for _ in MEMORIES]
        rivals = []
        for jumps in range(most + 1):
            scores = self._score(gram[:, -1, -1], TERM_PRICE * len(terms) + JUMP_PRICE * jumps)
            r = int(scores.argmin())
            rivals.append(Rival(name, float(scores[r]), MEMORIES[r], terms, tuple(taken[r])))
            if jumps == most or self.steps == self.y:
                break
            size = np.einsum("rii->ri", gram)[:, self.steps : self.y]
            usable = size > 1e-6 * self.before[:, self.steps : self.y]
            gain = gram[:, self.steps : self.y, -1] ** 2 / np.where(usable, size, np.inf)
            places = self.steps + gain.argmax(axis=1)
            _eliminate(gram, places)
            for row, place in enumerate(places):
                taken[row].append(int(place))
        return rivals

    def _single(self, name: str, first: int, times: tuple[float, ...]) -> list[Rival]:
        """The rival with one rising term."""
        columns = np.arange(first, first + len(times))
        size, is_own = self._sizes(columns)
        along = np.where(is_own, self.gram[:, columns, -1], 0)
        rss = self.gram[:, -1, -1][:, None] - np.where(along > 0, along**2 / size, 0)
        return [self._best(name, rss, columns, times, along / size, ())]

    def _double(self, name: str, first: int, times: tuple[float, ...]) -> list[Rival]:
        """The rival with one rising term and a line, both upwards."""
        columns = np.arange(first, first + len(times))
        a, is_own = self._sizes(columns)
        b = self.gram[:, self.line, self.line][:, None]
        c = self.gram[:, columns, self.line]
        g, h = self.gram[:, columns, -1], self.gram[:, self.line, -1][:, None]
        det = np.maximum(a * b - c * c, 1e-12 * a * b + TINY)
        curve, line = (b * g - c * h) / det, (a * h - c * g) / det
        rss = self.gram[:, -1, -1][:, None] - curve * g - line * h
        rss = np.where(is_own & (curve > 0) & (line > 0), rss, np.inf)
        return [self._best(name, rss, columns, times, curve, (self.line,))]

    def _sizes(self, columns: NDArray[np.intp]) -> tuple[Numbers, NDArray[np.bool_]]:
        """What each term adds to the known jumps, and whether that is more than rounding."""
        size = np.einsum("rii->ri", self.gram)[:, columns]
        is_own = size > 1e-9 * self.before[:, columns]
        return np.where(is_own, size, 1.0), is_own

    def _best(
        self,
        name: str,
        rss: Numbers,
        columns: NDArray[np.intp],
        times: tuple[float, ...],
        heights: Numbers,
        more: tuple[int, ...],
    ) -> Rival:
        scores = self._score(rss, TERM_PRICE * (2 + len(more)))
        r, i = np.unravel_index(int(scores.argmin()), scores.shape)
        height = float(heights[r, i]) * (times[i] if name in ("capped", "knee") else 1.0)
        terms = (int(columns[i]), *more)
        return Rival(name, float(scores[r, i]), MEMORIES[r], terms, (), times[i], height)


def _fit(columns: Numbers, memory: float) -> tuple[float, float, float, Numbers]:
    """Coefficient of the first column, its error, degrees of freedom, residuals as they are."""
    white = _white(columns, memory)
    design, y = white[:, :-1], white[:, -1]
    inverse = np.linalg.pinv(design.T @ design)
    beta = inverse @ design.T @ y
    rest = y - design @ beta
    freedom = max(1.0, float(len(y) - design.shape[1]))
    error = np.sqrt(max(float(rest @ rest) / freedom * inverse[0, 0], 0.0))
    return float(beta[0]), float(error), freedom, columns[:, -1] - columns[:, :-1] @ beta


def _white(columns: Numbers, memory: float) -> Numbers:
    """Columns with the part of each row that its predecessor foretells taken out."""
    white = columns.copy()
    white[1:] -= memory * columns[:-1]
    white[0] *= np.sqrt(1 - memory * memory)
    return white


def _eliminate(batch: Numbers, pivots: NDArray[np.intp]) -> None:
    """Takes one column out of each matrix: what is left is what it cannot explain."""
    rows = np.arange(len(batch))
    row = batch[rows, pivots]
    pivot = row[rows, pivots]
    safe = pivot > TINY
    row = np.where(safe[:, None], row, 0)
    batch -= row[:, :, None] * (row / np.where(safe, pivot, 1)[:, None])[:, None, :]
