"""Track in, Ground out: the level that stays, without what comes and goes.

A spike at a checkpoint, an evaluation, the first batches of an epoch: memory that is
given back within an eighth of the run says nothing about growth. What is left is cut
at jumps, so that a jump much larger than a whole leak does not hide it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from leakscope.judge.jumps import (
    DIP_SHARE,
    JUMP_SPREADS,
    LIKE_SHARE,
    SMALL_SHARE,
    increment_spread,
    jumps_of,
    partners_of,
    restless,
    sharp_jumps,
)
from leakscope.judge.track import Flags, Numbers, Track

HELD_SHARE = 1 / 8
"""A level counts once it is held for this share of the run. Saw-teeth and evaluations up to
that length disappear; a monotone series passes the opening unchanged, whatever its length."""

STAGES = 4
"""A fall may take this many points."""

SHELF_SHARE = 1 / 20
"""Longest shelf between two stages of one fall."""


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
    jump: float
    """Least size of a jump."""
    passing: NDArray[np.intp]
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

    def is_paired(self, step: float) -> bool:
        """True if the drop at this step, or just after it, undoes the jump just before it.

        A partner further back is none here: of many steps up some fits any tooth.
        """
        at = int(np.searchsorted(self.x, step))
        for j, (jump, size) in enumerate(zip(self.jump_at, self.jump_size, strict=True)):
            if size < 0 <= self.partner[j] and 0 <= jump - at < STAGES:
                between = self.jump_size[self.partner[j] + 1 : j]
                return all(abs(other) < LIKE_SHARE * -size for other in between)
        return False

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
    if len(y) == 0:
        return Ground(x, y, (), (), (), 0.0, np.zeros(0, dtype=np.intp), 0.0)
    spread = increment_spread(x, y)
    jump = max(JUMP_SPREADS * spread, 2 * track.grain, SMALL_SHARE * float(np.ptp(y)))
    kept = ~_is_passing(x, y, jump)
    dips = 0
    if kept.sum() < len(y) / 2:
        # Mostly above what is held: then that level is the usual one, seen between dips.
        usual = ~_is_dip(y, np.ones(len(y), dtype=bool), jump)
        usual[usual] = ~_is_passing(x[usual], y[usual], jump)
        if usual.sum() > kept.sum():
            kept, dips = usual, _count(~usual)
    if kept.sum() < max(5 if track.is_floors else 8, len(y) // 5):
        kept[:] = True
    is_dip = _is_dip(y, kept, jump)
    dips += _count(is_dip)
    kept &= ~is_dip
    gone = np.flatnonzero(~kept)
    kept, at, sizes = _settled_jumps(x, y, kept, max(jump, restless(x[kept], y[kept])))
    x, y = x[kept], y[kept]
    if dips >= 2 and at and sizes[-1] < 0 and len(y) - at[-1] < len(track.y) * DIP_SHARE:
        # One more dip, and the run ended before its return.
        end = at.pop()
        sizes.pop()
        x, y = x[:end], y[:end]
    return Ground(
        x,
        y,
        tuple(at),
        tuple(sizes),
        tuple(partners_of(sizes)),
        jump,
        gone,
        _passing_size(track, gone),
    )


def _passing_size(track: Track, gone: NDArray[np.intp]) -> float:
    """Usual distance of the points taken out from the level between them."""
    if len(gone) == 0:
        return 0.0
    between = np.interp(track.x[gone], np.delete(track.x, gone), np.delete(track.y, gone))
    return float(np.median(np.abs(track.y[gone] - between)))


def _count(flags: Flags) -> int:
    return int(ndimage.label(flags)[1])


def _held(n: int) -> int:
    return max(3, int(n * HELD_SHARE))


def _held_level(y: Numbers) -> Numbers:
    """At each point the highest level held around it for long enough."""
    return np.asarray(ndimage.grey_opening(y, _held(len(y)), mode="nearest"))


def _is_passing(x: Numbers, y: Numbers, jump: float) -> Flags:
    """Points of stretches between jumps that lie wholly above the level held around them."""
    passing = np.zeros(len(y), dtype=bool)
    if len(y) < 8:
        return passing
    edges = np.concatenate([[0], sharp_jumps(x, y, jump), [len(y)]])
    # Near the end of a plateau the held level is that of a window ago: what the drift has
    # added since is no excursion, so the drift is taken out first.
    level = y - float(np.median(np.diff(y) / np.diff(x))) * (x - x[0])
    above = np.minimum.reduceat(level - _held_level(level), edges[:-1])
    return np.repeat(above > jump, np.diff(edges))


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


def _settled_jumps(
    x: Numbers, y: Numbers, kept: Flags, jump: float
) -> tuple[Flags, list[int], list[float]]:
    """The jumps of the kept points, a fall in two stages counted as one.

    The shelf between the stages is left out: without that no drop has the size of the
    rise it undoes, and a buffer given back late looks like growth given back.
    """
    at, sizes = jumps_of(x[kept], y[kept], jump)
    index = np.flatnonzero(kept)
    shelves = [
        (first, second)
        for first, second, one, other in zip(at, at[1:], sizes, sizes[1:], strict=False)
        if one < 0 and other < 0 and second - first <= len(y) * SHELF_SHARE
    ]
    if not shelves:
        return kept, at, sizes
    kept = kept.copy()
    for first, second in shelves:
        kept[index[first:second]] = False
    return kept, *jumps_of(x[kept], y[kept], jump)
