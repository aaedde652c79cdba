"""Growth per step as the counters have it, over the stretch in which holders were counted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from leakscope.judge.series import PINNED
from leakscope.model import LOOKS, USUAL_BLOCK_BYTES, Holding
from leakscope.record.reader import Columns, Recording

BLOCK_BYTES = USUAL_BLOCK_BYTES

CLOCK = "tick"
COUNTS_OF_A_LOOK = 3
ENOUGH_POINTS = 8
_NOT_COUNTED_AT_OPENINGS = ("array", "graph")
"""Their sizes are read at first and second looks only. From the opening of the last window to the
look that closes it they grow little, and by the clock that is mostly our own time."""


def looked_at(recording: Recording, process: str) -> str:
    """The source of steps at whose rows the last look was taken."""
    looks = [mark for mark in recording.marks if mark.what == "look" and mark.process == process]
    return looks[-1].source if looks else ""


class Measured(NamedTuple):
    """Growth per step by the counters."""

    per_step: float
    until: int | None = None
    """The step of the last opening of a window, where it is by the looks at which the holders were
    counted; or else by the rows."""

    def count_of(self, holding: Holding) -> float:
        """How many more it keeps per step, over the same stretch."""
        if self.until is None or not _is_counted_by_looks(holding):
            return holding.count_per_step
        (first_step, first), (last_step, last) = holding.counts[0], holding.counts[-2]
        if holding.kind in _NOT_COUNTED_AT_OPENINGS:
            last_step, last = self.until, holding.counts[-1][1]
        return (last - first) / (last_step - first_step) if last_step > first_step else 0.0


def _is_counted_by_looks(holding: Holding) -> bool:
    return (
        holding.kind in _NOT_COUNTED_AT_OPENINGS or len(holding.counts) >= COUNTS_OF_A_LOOK
    ) and holding.counts[0] != holding.counts[-1]


def ways_to_measure(
    recording: Recording,
    process: str,
    latest: Sequence[Holding],
    device: str | None = None,
    is_reserved: bool = False,
    block_bytes: float = BLOCK_BYTES,
) -> list[Measured]:
    """Growth per step over the stretch in which these were counted. What comes once in a stretch
    makes the holders' part of it too small, so there is more than one.

    By the clock our own looks slow the program down, so that holders and counters are compared
    over the same time; but two readings of the counters are at the mercy of what is in flight just
    then, so that with more than one look the rows are another way."""
    steps = [step for holding in latest for step, _ in holding.counts]
    first, last = (min(steps), max(steps)) if steps else (0, sys.maxsize)
    columns = recording.columns(process, looked_at(recording, process))
    if device == PINNED:
        return [Measured(max(_pinned_per_step(recording, process), 0.0))]
    if device is not None:
        counter = "reserved_bytes" if is_reserved else "allocated_bytes"
        on_device = slope(columns, f"{device}.{counter}", first, 2 * last)
        return [Measured(max(on_device or 0.0, 0.0))]
    # As many steps after them: few rows lie between two looks, and what is in flight is in each.
    ways = [Measured(live_per_step(recording, process, first, 2 * last, block_bytes))]
    if looked_at(recording, process) == CLOCK:
        by_marks = _grown_by_marks(recording, process, latest, block_bytes)
        if by_marks is None:
            return ways
        is_once = all(len(holding.counts) < 2 * COUNTS_OF_A_LOOK for holding in latest)
        return [by_marks] if is_once else [*ways, by_marks]
    rows = [step for step in columns.get("step", ()) if step is not None]
    if sum(first <= step <= last for step in rows) >= ENOUGH_POINTS:
        ways.append(Measured(live_per_step(recording, process, first, last, block_bytes)))
    return ways


def live_per_step(
    recording: Recording,
    process: str,
    first: int,
    last: int,
    block_bytes: float = BLOCK_BYTES,
) -> float:
    """Growth per step of what is alive in the host's memory, by the rows between two steps."""
    columns = recording.columns(process, looked_at(recording, process))
    looks = _steps_of_looks(recording, process)
    live = slope(columns, "in_use_bytes", first, last, looks)
    if live is None:
        # Resident memory has the small objects in it already.
        return max(slope(columns, "rss_bytes", first, last, looks) or 0.0, 0.0)
    if recording.pool_of(process):
        return max(live, 0.0)
    blocks = slope(columns, "blocks_count", first, last, looks) or 0.0
    return max(live, 0.0) + block_bytes * max(blocks, 0.0)


def _pinned_per_step(recording: Recording, process: str) -> float:
    """By the samples between which steps were counted."""
    points = [
        (sample.at.step, sample.values["pinned_bytes"])
        for sample in recording.samples
        if sample.process == process and sample.at.step and "pinned_bytes" in sample.values
    ]
    columns: Columns = {"step": [s for s, _ in points], "pinned_bytes": [v for _, v in points]}
    return slope(columns, "pinned_bytes", 0, sys.maxsize) or 0.0


def _grown_by_marks(
    recording: Recording, process: str, latest: Sequence[Holding], block_bytes: float
) -> Measured | None:
    """Growth of what is alive from the first to the last window at whose opening, or look at
    which, these were counted. None where it did not grow, or where that is not known."""
    counted = [one for one in latest if _is_counted_by_looks(one)]
    if not counted:
        return None
    marks = {
        mark.at.step: mark
        for mark in recording.marks
        if mark.what == "look" and mark.process == process and mark.at.step is not None
    }
    first_step = min(one.counts[0][0] for one in counted)
    last_step = max(
        max((step for step in marks if step <= one.counts[-1][0]), default=0)
        if one.kind in _NOT_COUNTED_AT_OPENINGS
        else one.counts[-2][0]
        for one in counted
    )
    first, last = marks.get(first_step), marks.get(last_step)
    if first is None or last is None or last_step <= first_step:
        return None
    of_blocks = 0.0 if recording.pool_of(process) else block_bytes
    grown = sum(
        (last.values.get(name, 0) - first.values.get(name, 0)) * size
        for name, size in (("in_use_bytes", 1.0), ("blocks_count", of_blocks))
    )
    return Measured(grown / (last_step - first_step), until=last_step) if grown > 0 else None


def _steps_of_looks(recording: Recording, process: str) -> list[int]:
    """None, by the clock: holders are counted over the time that looks take, too."""
    if looked_at(recording, process) == CLOCK:
        return []
    return [
        mark.at.step
        for mark in recording.marks
        if mark.what in LOOKS and mark.process == process and mark.at.step is not None
    ]


def slope(
    columns: Columns, name: str, first: int, last: int, looks: Sequence[int] = ()
) -> float | None:
    """The median slope between rows half of that apart: one-time rises do not matter to it. But
    half of the pairs have a look in the middle between them, so the rows around a look are joined:
    what it leaves is ours (100 KB beside a leak of 1.2 KB a step)."""
    pairs = zip(columns.get("step", ()), columns.get(name, ()), strict=False)
    points = [(step, value) for step, value in pairs if step is not None and value is not None]
    around = [point for point in points if first <= point[0] <= last]
    if len(around) >= ENOUGH_POINTS:
        points = around
    if len(joined := _joined(points, looks)) >= ENOUGH_POINTS:
        points = joined
    half = len(points) // 2
    slopes = [
        (later - earlier) / (step - before)
        for (before, earlier), (step, later) in zip(points, points[half:], strict=False)
        if step > before
    ]
    return median(slopes) if slopes else None


def _joined(points: Sequence[tuple[int, int]], looks: Sequence[int]) -> list[tuple[int, int]]:
    """The same points without the steps across a look, and without what rose in them."""
    joined = list(points[:1])
    for (before, earlier), (step, later) in pairwise(points):
        if not any(before <= look < step for look in looks):
            last_step, last_value = joined[-1]
            joined.append((last_step + step - before, last_value + later - earlier))
    return joined
