"""Track in, Ground out: the level that stays, without what comes and goes.

A spike at a checkpoint, an evaluation, the first batches of an epoch: memory that is
given back within an eighth of the run says nothing about growth. What is left is cut
at jumps, so that a jump much larger than a whole leak does not hide it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from leakscope.judge.track import Flags, Numbers, Track

HELD_SHARE = 1 / 8
"""A level counts once it is held for this share of the run. Saw-teeth and evaluations up to
that length disappear; a monotone series passes the opening unchanged, whatever its length."""

DIP_SHARE = 1 / 12
"""A dip is narrower than this share of the run, and begins and ends sharply."""

JUMP_SPREADS = 6.0
"""A jump is this many times the usual spread of the increments. Of normal increments one in
500 million is larger; bursts are, and are removed as excursions."""

PAIR_TOLERANCE = 0.35
"""An up and a later down are one buffer taken and given back if their sizes differ by less."""


@dataclass(frozen=True)
class Ground:
    """What stays: the kept points, and where their level jumps."""

    x: Numbers
    y: Numbers
    jump_at: tuple[int, ...]
    """Indices into the kept points: the first point after each jump."""
    jump_size: tuple[float, ...]
    partner: tuple[int, ...]
    """Position of the jump that undoes this one, or -1 for a jump that stands alone."""
    spread: float
    """Usual spread of one increment."""
    passing: Numbers
    """Indices, into the track, of points that were taken out as excursions."""
    passing_size: float

    def without_pairs(self) -> Numbers:
        """The kept values as if nothing had been taken and given back between two jumps."""
        y = self.y.copy()
        for first, second in enumerate(self.partner):
            if second > first:
                taken = (self.jump_size[first] - self.jump_size[second]) / 2
                y[self.jump_at[first] : self.jump_at[second]] -= taken
        return y

    def lone_drops(self) -> list[int]:
        """Positions, in the list of jumps, of the drops that undo no single jump."""
        pairs = zip(self.jump_size, self.partner, strict=True)
        return [j for j, (size, other) in enumerate(pairs) if size < 0 and other < 0]

    def lone_rises(self) -> list[int]:
        """Positions, in the list of jumps, of the rises that were never undone."""
        pairs = zip(self.jump_size, self.partner, strict=True)
        return [j for j, (size, other) in enumerate(pairs) if size > 0 and other < 0]


def ground_of(track: Track) -> Ground:
    """The level that stays and its jumps."""
    x, y = track.x, track.y
    spread = _increment_spread(x, y)
    jump = max(JUMP_SPREADS * spread, 2 * track.grain)
    kept = ~_is_passing(y, jump)
    if kept.sum() < len(y) / 2:
        # Mostly above what is held: then that level is the usual one, seen between dips.
        usual = ~_is_dip(y, np.ones(len(y), dtype=bool), jump)
        usual[usual] = ~_is_passing(y[usual], jump)
        if usual.sum() > kept.sum():
            kept = usual
    if kept.sum() < max(8, len(y) // 5):
        kept[:] = True
    kept &= ~_is_dip(y, kept, jump)
    gone = np.flatnonzero(~kept)
    held = ndimage.grey_opening(y, _held(len(y)), mode="nearest") if len(y) else y
    at, sizes = _jumps(x[kept], y[kept], jump)
    x, y = x[kept], y[kept]
    while at and len(y) - at[-1] < len(track.y) * DIP_SHARE and at[-1] >= 8:
        # Too new to tell a step from the start of an excursion.
        x, y = x[: at[-1]], y[: at[-1]]
        at.pop()
        sizes.pop()
    return Ground(
        x,
        y,
        tuple(at),
        tuple(sizes),
        tuple(_partners(sizes)),
        spread,
        gone.astype(float),
        float(np.median((track.y - held)[gone])) if len(gone) else 0.0,
    )


def _held(n: int) -> int:
    return max(3, int(n * HELD_SHARE))


def _increment_spread(x: Numbers, y: Numbers) -> float:
    """Scaled median deviation of the increments, drift taken out.

    Half of all increments may be jumps before it breaks. Where most are zero it is zero,
    and then every change of more than the grain is a jump, as it should be.
    """
    if len(y) < 3:
        return 0.0
    gaps = np.diff(x)
    rises = np.diff(y)
    rises = rises - np.median(rises / gaps) * gaps
    return float(1.4826 * np.median(np.abs(rises)))


def _is_passing(y: Numbers, jump: float) -> Flags:
    """Points more than a jump above the level held around them."""
    if len(y) < 8:
        return np.zeros(len(y), dtype=bool)
    held = ndimage.grey_opening(y, _held(len(y)), mode="nearest")
    return np.asarray(y - held > jump)


def _is_dip(y: Numbers, kept: Flags, jump: float) -> Flags:
    """Points of narrow dips: a sharp fall, a few points, a sharp return."""
    dips = np.zeros(len(y), dtype=bool)
    index = np.flatnonzero(kept)
    width = int(len(y) * DIP_SHARE)
    if len(index) < 8 or width < 2:
        return dips
    level = y[index]
    filled = ndimage.grey_closing(level, max(3, width), mode="nearest")
    labels, count = ndimage.label(filled - level > jump)
    for run in ndimage.find_objects(labels)[:count]:
        first, end = run[0].start, run[0].stop
        if first == 0 or end == len(level):
            continue
        is_sharp = level[first - 1] - level[first] > jump and level[end] - level[end - 1] > jump
        if is_sharp:
            dips[index[first:end]] = True
    return dips


def _jumps(x: Numbers, y: Numbers, jump: float) -> tuple[list[int], list[float]]:
    """Where the kept level jumps, and by how much; jumps of neighbouring steps are one."""
    if len(y) < 3:
        return [], []
    gaps = np.diff(x)
    rises = np.diff(y)
    usual = float(np.median(rises / gaps))
    at: list[int] = []
    sizes: list[float] = []
    for i in np.flatnonzero(np.abs(rises - usual * gaps) > jump) + 1:
        before, after = max(0, i - 3), min(len(y), i + 3)
        if at and i - at[-1] <= 1 and sizes[-1] * rises[i - 1] > 0:
            sizes[-1] += float(rises[i - 1])
            at[-1] = int(i)
            continue
        # Medians of three: one noisy value beside the jump must not set its size.
        size = float(np.median(y[i:after]) - np.median(y[before:i]))
        at.append(int(i))
        sizes.append(size if size * rises[i - 1] > 0 else float(rises[i - 1]))
    return at, sizes


def _partners(sizes: list[float]) -> list[int]:
    """Which jumps undo one another: each takes the latest free one of its size before it."""
    partner = [-1] * len(sizes)
    for later, size in enumerate(sizes):
        for earlier in range(later - 1, -1, -1):
            other = sizes[earlier]
            if partner[earlier] >= 0 or size * other >= 0:
                continue
            if abs(size + other) <= PAIR_TOLERANCE * max(abs(size), abs(other)):
                partner[earlier], partner[later] = later, earlier
                break
    return partner
