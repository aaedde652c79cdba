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

from leakscope.judge.track import Flags, Numbers, Track

HELD_SHARE = 1 / 8
"""A level counts once it is held for this share of the run. Saw-teeth and evaluations up to
that length disappear; a monotone series passes the opening unchanged, whatever its length."""

DIP_SHARE = 1 / 12
"""A dip is narrower than this share of the run, and begins and ends sharply."""

SHELF_SHARE = 1 / 20
"""Longest shelf between two stages of one fall."""

JUMP_SPREADS = 6.0
"""A jump is this many times the usual spread of the increments. Of normal increments one in
500 million is larger; bursts are, and are removed as excursions."""

SMALL_SHARE = 1e-4
"""Below this share of the whole range nothing is a jump: counters without noise are still
rounded, and a line of 1.5 bytes per step moves by 1 and 2 in turn."""

RESTLESS = 4.0
"""Times the largest of five increments; of normal ones this is 5 times their spread, so
that `JUMP_SPREADS` decides there."""

WIDE_POINTS = 6
WIDE_SPREADS = 7.0
MOST_WIDE = 8
"""Medians of six points find jumps of 5 sigma where single increments find those of 8.5. Of
600 normal contrasts the largest is about 3.3 spreads; seven leave room for correlation."""

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
    spread = _increment_spread(x, y)
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
    kept, at, sizes = _settled_jumps(x, y, kept, max(jump, _restless(x[kept], y[kept])))
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
        tuple(_partners(sizes)),
        jump,
        gone,
        _passing_size(track, gone),
    )


@dataclass(frozen=True)
class Tooth:
    """A drop that undoes the rise just before it."""

    at: float
    drop: float
    undone: float
    """How much of the rise the drop gave back: never more than either."""


def teeth_of(x: Numbers, y: Numbers, jump: float, from_step: float) -> list[Tooth]:
    """The teeth from a step on.

    A drop can give back no more than the stretch before it gained, so the end of a spike
    or of an evaluation counts for nothing, and neither does a narrow dip.
    """
    width = len(y) * DIP_SHARE
    first = int(np.searchsorted(x, from_step))
    x, y = x[first:], y[first:]
    if len(y) < 3:
        return []
    sharp = _sharp(x, y, jump)
    sizes = y[sharp] - y[sharp - 1]
    teeth = []
    for j in np.flatnonzero(sizes < float(sizes.min(initial=0.0)) / 10):
        drop, at = float(-sizes[j]), int(sharp[j])
        # Small bursts on the way up do not end a tooth, and are no part of its rise.
        like = np.abs(sizes) > drop / 4
        before, after = np.flatnonzero(like[:j]), np.flatnonzero(like[j + 1 :]) + j + 1
        since = int(before[-1]) + 1 if len(before) else 0
        start = int(sharp[since - 1]) if since else 0
        is_dip = (
            len(after) > 0
            and sharp[after[0]] - at <= width
            and sizes[after[0]] > (1 - PAIR_TOLERANCE) * drop
        )
        rise = float(y[at - 1] - y[start] - sizes[since:j].sum())
        undone = min(drop, rise)
        if undone > 0 and not is_dip:
            teeth.append(Tooth(float(x[at]), drop, undone))
    return teeth


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


def _restless(x: Numbers, y: Numbers) -> float:
    """Least jump between kept points: well above what one increment in five does anyway.

    The median deviation is nearly zero where most increments are; then every small burst
    that was not high enough to be taken out would stand as a jump.
    """
    if len(y) < 3:
        return 0.0
    gaps = np.diff(x)
    rises = np.diff(y)
    usual = float(np.median(rises / gaps))
    return RESTLESS * float(np.quantile(np.abs(rises - usual * gaps), 0.8))


def _held_level(y: Numbers) -> Numbers:
    """At each point the highest level held around it for long enough."""
    return np.asarray(ndimage.grey_opening(y, _held(len(y)), mode="nearest"))


def _sharp(x: Numbers, y: Numbers, jump: float) -> NDArray[np.intp]:
    """Indices of the points that a jump leads to."""
    gaps = np.diff(x)
    rises = np.diff(y)
    usual = float(np.median(rises / gaps))
    # Both conditions: where a line ends in a plateau, the plateau is no row of jumps.
    return np.flatnonzero((np.abs(rises - usual * gaps) > jump) & (np.abs(rises) > jump)) + 1


def _is_passing(x: Numbers, y: Numbers, jump: float) -> Flags:
    """Points of stretches between jumps that lie wholly above the level held around them."""
    passing = np.zeros(len(y), dtype=bool)
    if len(y) < 8:
        return passing
    edges = np.concatenate([[0], _sharp(x, y, jump), [len(y)]])
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
    at, sizes = _jumps(x[kept], y[kept], jump)
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
    return kept, *_jumps(x[kept], y[kept], jump)


def _jumps(x: Numbers, y: Numbers, jump: float) -> tuple[list[int], list[float]]:
    """Where the kept level jumps, and by how much; jumps of neighbouring steps are one."""
    if len(y) < 3:
        return [], []
    rises = np.diff(y)
    usual = float(np.median(rises / np.diff(x)))
    found: dict[int, float] = {}
    last = -2
    for i in _sharp(x, y, jump).tolist():
        # Medians of three: one noisy value beside the jump must not set its size. What the
        # drift adds from one side to the other belongs to the drift.
        before, after = slice(max(0, i - 3), i), slice(i, i + 3)
        drifted = usual * float(x[after].mean() - x[before].mean())
        size = float(np.median(y[after]) - np.median(y[before])) - drifted
        size = size if size * rises[i - 1] > 0 else float(rises[i - 1])
        if i - last <= 1 and found[last] * size > 0:
            size = found.pop(last) + float(rises[i - 1])
        found[i] = size
        last = i
    found.update(_wide_jumps(y, found))
    at = sorted(found)
    return at, [found[i] for i in at]


def _wide_jumps(y: Numbers, known: dict[int, float]) -> dict[int, float]:
    """Jumps too small for one increment, but not for the medians of six points on each side."""
    wide = WIDE_POINTS
    if len(y) < 10 * wide:
        return {}
    flat = y.copy()
    for i, size in known.items():
        flat[i:] -= size
    medians = np.median(np.lib.stride_tricks.sliding_window_view(flat, wide), axis=1)
    plain = medians[wide:] - medians[:-wide]
    contrast = plain - np.median(plain)
    least = WIDE_SPREADS * 1.4826 * float(np.median(np.abs(contrast)))
    # A flat stretch of a rising series is no drop.
    contrast[plain * contrast <= 0] = 0
    found: dict[int, float] = {}
    for _ in range(MOST_WIDE):
        peak = int(np.abs(contrast).argmax())
        if abs(contrast[peak]) <= least:
            break
        found[peak + wide] = float(contrast[peak])
        contrast[max(0, peak - wide) : peak + wide + 1] = 0
    return {i: size for i, size in found.items() if all(abs(i - k) > 2 for k in known)}


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
