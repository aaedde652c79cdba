"""Growth per step as the counters have it, over the stretch in which holders were counted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import median

from leakscope.judge.series import PINNED
from leakscope.model import USUAL_BLOCK_BYTES, Holding
from leakscope.record.reader import Columns, Recording

BLOCK_BYTES = USUAL_BLOCK_BYTES

CLOCK = "tick"
COUNTS_OF_A_LOOK = 3
ENOUGH_POINTS = 8
_TWO_LOOKS = 2


def looked_at(recording: Recording, process: str) -> str:
    """The source of steps at whose rows the last look was taken."""
    looks = [mark for mark in recording.marks if mark.what == "look" and mark.process == process]
    return looks[-1].source if looks else ""


def measured_per_step(
    recording: Recording,
    process: str,
    latest: Sequence[Holding],
    device: str | None = None,
    is_reserved: bool = False,
    block_bytes: float = BLOCK_BYTES,
) -> float:
    """Growth per step of what is alive, by the rows of the source that was looked at, over the
    steps between the looks and as many after them."""
    if device is None and compares_marks(recording, process, latest):
        return _measured_by_marks(recording, process, block_bytes)
    columns = recording.columns(process, looked_at(recording, process))
    steps = [step for holding in latest for step, _ in holding.counts]
    first, last = (min(steps), 2 * max(steps)) if steps else (0, sys.maxsize)
    if device == PINNED:
        return max(_pinned_per_step(recording, process), 0.0)
    if device is not None:
        counter = "reserved_bytes" if is_reserved else "allocated_bytes"
        return max(slope(columns, f"{device}.{counter}", first, last) or 0.0, 0.0)
    return live_per_step(recording, process, first, last, block_bytes)


def live_per_step(
    recording: Recording,
    process: str,
    first: int,
    last: int,
    block_bytes: float = BLOCK_BYTES,
) -> float:
    """Growth per step of what is alive in the host's memory, by the rows between two steps."""
    columns = recording.columns(process, looked_at(recording, process))
    live = slope(columns, "in_use_bytes", first, last)
    if live is None:
        # Resident memory has the small objects in it already.
        return max(slope(columns, "rss_bytes", first, last) or 0.0, 0.0)
    if recording.pool_of(process):
        return max(live, 0.0)
    blocks = slope(columns, "blocks_count", first, last) or 0.0
    return max(live, 0.0) + block_bytes * max(blocks, 0.0)


def compares_marks(recording: Recording, process: str, latest: Sequence[Holding]) -> bool:
    """By the clock our own look slows the program down: holder and counters are compared over the
    same stretch of time, from the first look to the opening of the window. Two readings, though,
    are at the mercy of what is in flight just then: with more looks the rows are better."""
    if looked_at(recording, process) != CLOCK or _measured_by_marks(recording, process) <= 0:
        return False
    return all(len(holding.counts) < 2 * COUNTS_OF_A_LOOK for holding in latest)


def _pinned_per_step(recording: Recording, process: str) -> float:
    """By the samples between which steps were counted."""
    points = [
        (sample.at.step, sample.values["pinned_bytes"])
        for sample in recording.samples
        if sample.process == process and sample.at.step and "pinned_bytes" in sample.values
    ]
    columns: Columns = {"step": [s for s, _ in points], "pinned_bytes": [v for _, v in points]}
    return slope(columns, "pinned_bytes", 0, sys.maxsize) or 0.0


def _measured_by_marks(
    recording: Recording, process: str, block_bytes: float = BLOCK_BYTES
) -> float:
    """Growth of what is alive from the first look to the opening of the window."""
    looks = [mark for mark in recording.marks if mark.what == "look" and mark.process == process]
    if len(looks) < _TWO_LOOKS:
        return 0.0
    first, opened = looks[:2]
    steps = (opened.at.step or 0) - (first.at.step or 0)
    of_blocks = 0.0 if recording.pool_of(process) else block_bytes
    grown = sum(
        (opened.values.get(name, 0) - first.values.get(name, 0)) * size
        for name, size in (("in_use_bytes", 1.0), ("blocks_count", of_blocks))
    )
    return max(grown, 0.0) / steps if steps > 0 else 0.0


def slope(columns: Columns, name: str, first: int, last: int) -> float | None:
    """The median slope between rows half of that apart: one-time rises do not matter to it."""
    pairs = zip(columns.get("step", ()), columns.get(name, ()), strict=False)
    points = [(step, value) for step, value in pairs if step is not None and value is not None]
    around = [point for point in points if first <= point[0] <= last]
    if len(around) >= ENOUGH_POINTS:
        points = around
    half = len(points) // 2
    slopes = [
        (later - earlier) / (step - before)
        for (before, earlier), (step, later) in zip(points, points[half:], strict=False)
        if step > before
    ]
    return median(slopes) if slopes else None
