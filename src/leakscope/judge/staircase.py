"""Ground in, Staircase out: growth that shows only in chunks.

An arena, a block of a list, an epoch: a leak may be visible only once in many steps.
What tells it from a high-water mark is that the rises go on at the same pace.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope.judge.excursions import Ground

FEWEST_RISES = 4
"""Four rises of like size at like distances, the last one recent."""

UNLIKE_SIZES = 3.5
"""Largest rise over the median rise. Records of a high-water mark may be as alike, but not
also as regular."""

UNLIKE_GAPS = 3.5
"""Largest distance over the median distance, and silence since the last rise likewise."""

EVEN_RISES = 5
UNLIKE_WHEN_EVEN = 2.2
"""Five rises whose sizes and distances, the silence at both ends among them, are at most 2.2 times
the usual one (a rise that was missed doubles a distance) are a staircase by their evenness alone.
Steps that end are as even, but the silence after them is longer than that."""


SAME_SIZE = 1.1
"""Records differ by more; the outputs of an epoch, kept after each, do not. A choice."""

CRUMB_SHARE = 0.1
START_SHARE = 0.05
"""Rises below a tenth of the largest, and those in the first twentieth, are not stairs."""


@dataclass(frozen=True)
class Staircase:
    """Rises of like size that keep coming."""

    at: tuple[float, ...]
    size: float
    """Of the usual rise."""
    is_even: bool
    """So regular that nothing else has to speak for it."""


def staircase_of(ground: Ground) -> Staircase | None:
    """The staircase in this ground, if its lone rises are regular and still going on."""
    rises = _stairs(ground)
    if len(rises) < FEWEST_RISES or len(ground.lone_drops()) > len(rises) // 4:
        return None
    sizes = np.asarray([ground.jump_size[j] for j in rises])
    at = np.asarray([ground.x[ground.jump_at[j]] for j in rises])
    usual_size = float(np.median(sizes))
    gaps = np.diff(at)
    usual_gap = float(np.median(gaps))
    silence = float(ground.x[-1] - at[-1])
    before = float(at[0] - ground.x[0])
    if sizes.max() > UNLIKE_SIZES * usual_size:
        return None
    if max(gaps.max(), silence) > UNLIKE_GAPS * usual_gap or before > 0.5 * (at[-1] - ground.x[0]):
        return None
    most = UNLIKE_WHEN_EVEN
    is_even = (
        len(rises) >= EVEN_RISES
        and sizes.max() <= most * usual_size <= most**2 * sizes.min()
        and max(before, gaps.max(), silence) <= most * usual_gap
    )
    return Staircase(tuple(at.tolist()), usual_size, bool(is_even))


def like_rises(ground: Ground) -> Staircase | None:
    """Too few rises to be called growth, and too much alike to be records: each is as high as the
    others, and the next may well be due."""
    rises = ground.lone_rises()
    largest = max((ground.jump_size[j] for j in rises), default=0.0)
    rises = [j for j in rises if ground.jump_size[j] >= largest / 2]
    if len(rises) < FEWEST_RISES or ground.lone_drops():
        return None
    sizes = np.asarray([ground.jump_size[j] for j in rises])
    at = np.asarray([ground.x[ground.jump_at[j]] for j in rises])
    gaps = np.diff(at)
    silence = float(ground.x[-1] - at[-1])
    is_alike = sizes.max() <= SAME_SIZE * sizes.min()
    is_due = max(gaps.max(), silence) <= UNLIKE_WHEN_EVEN * float(np.median(gaps))
    if not (is_alike and is_due):
        return None
    return Staircase(tuple(at.tolist()), float(np.median(sizes)), is_even=False)


def _stairs(ground: Ground) -> list[int]:
    """The lone rises that can be stairs: not the crumbs between them, not what came with the start.

    A loop that keeps 2 MB every 50 steps also gains half a KiB now and then, and its optimizer's
    state at the first step; counted as stairs they would make even ones look uneven.
    """
    rises = list(ground.lone_rises())
    if len(rises) < FEWEST_RISES:
        return rises
    start = ground.x[0] + START_SHARE * (ground.x[-1] - ground.x[0])
    later = [j for j in rises if ground.x[ground.jump_at[j]] > start]
    if len(later) < FEWEST_RISES:
        return rises
    largest = max(ground.jump_size[j] for j in later)
    return [j for j in later if ground.jump_size[j] >= CRUMB_SHARE * largest]
