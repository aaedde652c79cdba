"""Positions and values in, jumps out: where a level changes within one step, and what undoes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.judge.track import Numbers

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

LIKE_SHARE = 0.25
"""Of a drop: smaller jumps before it are beside the point."""

LOOK_BACK = 3
"""So many jumps back a drop may find what it gives back. Further back some sum always fits."""

DIP_SHARE = 1 / 12
"""A dip is narrower than this share of the run, and begins and ends sharply."""


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
    sharp = sharp_jumps(x, y, jump)
    sizes = y[sharp] - y[sharp - 1]
    teeth = []
    for j in np.flatnonzero(sizes < float(sizes.min(initial=0.0)) / 10):
        drop, at = float(-sizes[j]), int(sharp[j])
        # Small bursts on the way up do not end a tooth, and are no part of its rise.
        like = np.abs(sizes) > LIKE_SHARE * drop
        before, after = np.flatnonzero(like[:j]), np.flatnonzero(like[j + 1 :]) + j + 1
        since = int(before[-1]) + 1 if len(before) else 0
        start = int(sharp[since - 1]) if since else 0
        is_dip = (
            len(after) > 0
            and sharp[after[0]] - at <= width
            and sizes[after[0]] > (1 - PAIR_TOLERANCE) * drop
        )
        rise = float(y[at - 1] - y[start] - sizes[since:j].sum())
        undone = min(drop - _taken(sizes[before[-LOOK_BACK:]], drop), rise)
        if undone > 0 and not is_dip:
            teeth.append(Tooth(float(x[at]), drop, undone))
    return teeth


def _taken(sizes: Numbers, drop: float) -> float:
    """What the jumps before a drop took and had not given back, if that is what it gives back.

    An epoch that begins with its loaders and a buffer, and soon frees the loaders, ends with
    a drop that undoes no growth.
    """
    for taken in np.cumsum(sizes[::-1]).tolist():
        if abs(drop - taken) <= PAIR_TOLERANCE * max(drop, taken):
            return float(taken)
    return 0.0


def increment_spread(x: Numbers, y: Numbers) -> float:
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


def restless(x: Numbers, y: Numbers) -> float:
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


def sharp_jumps(x: Numbers, y: Numbers, jump: float) -> NDArray[np.intp]:
    """Indices of the points that a jump leads to."""
    gaps = np.diff(x)
    rises = np.diff(y)
    usual = float(np.median(rises / gaps))
    # Both conditions: where a line ends in a plateau, the plateau is no row of jumps.
    is_sharp = (np.abs(rises - usual * gaps) > jump) & (np.abs(rises) > jump)
    # And where a plateau ends in a line, the line is none either: a jump stands out from
    # both its neighbours.
    pace = rises / gaps
    like = (pace[1:] * pace[:-1] > 0) & (
        np.maximum(np.abs(pace[1:]), np.abs(pace[:-1]))
        < 2 * np.minimum(np.abs(pace[1:]), np.abs(pace[:-1]))
    )
    is_sharp[1:-1] &= ~(like[1:] & like[:-1])
    return np.flatnonzero(is_sharp) + 1


def jumps_of(x: Numbers, y: Numbers, jump: float) -> tuple[list[int], list[float]]:
    """Where the kept level jumps, and by how much; jumps of neighbouring steps are one."""
    if len(y) < 3:
        return [], []
    rises = np.diff(y)
    usual = float(np.median(rises / np.diff(x)))
    found: dict[int, float] = {}
    last, first = -2, 0
    for i in sharp_jumps(x, y, jump).tolist():
        is_same = i - last <= 1 and rises[i - 1] * rises[last - 1] > 0
        first = first if is_same else i
        # Medians of three: one noisy value beside the jump must not set its size. What the
        # drift adds from one side to the other belongs to the drift.
        before, after = slice(max(0, first - 3), first), slice(i, i + 3)
        drifted = usual * float(x[after].mean() - x[before].mean())
        size = float(np.median(y[after]) - np.median(y[before])) - drifted
        if is_same:
            found.pop(last, None)
        found[i] = size if size * rises[i - 1] > 0 else float(y[i] - y[first - 1])
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


def partners_of(sizes: list[float]) -> list[int]:
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
