"""The axis a run is judged on: which process counts the steps, and which step a moment is in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakscope.record.reader import Recording

Floats = NDArray[np.float64]

CLOCKS = ("time", "tick")
"""Rows by the clock: the supervisor's, from outside, and the agent's own, which has the exact
counters. Their numbers are no steps that the user knows."""

STRENGTH = (*CLOCKS, "dataloader", "fetch", "forward", "call", "batch", "optimizer", "api")
"""Sources of rows, the weakest first."""

TICK_S = 0.01
"""The agent numbers its ticks, and what it finds at them, in hundredths of a second."""

_ROWS_TO_COUNT = 10
_COVERAGE_TO_COUNT = 0.5
"""A source counts if it has rows over half the time in which the process stepped at all: three
optimizer steps before an hour of inference do not make it a training run."""

_TICKS_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
_MOST_TICKS = 2000


class Axis(NamedTuple):
    """Steps against the clock."""

    source: str
    process: str | None
    """Whose steps they are; None for the clock's."""
    mono_ns: Floats
    steps: Floats
    tick_s: float | None = None
    counted: int = 0
    """Steps the agent counted to the end, with and without rows."""

    @property
    def last_step(self) -> int:
        return max(int(self.steps[-1]) if len(self.steps) else 0, self.counted)

    @property
    def step_seconds(self) -> float | None:
        """Median time of a step."""
        if self.tick_s is not None:
            return self.tick_s
        if len(self.steps) < 2:
            return None
        spans = np.diff(self.mono_ns) / np.maximum(np.diff(self.steps), 1e-9)
        return float(np.median(spans)) / 1e9

    def at(self, mono_ns: Floats) -> Floats:
        """The step, and the part of a step, that each moment falls in; the ends for all outside."""
        if len(self.steps) < 2:
            return np.zeros_like(mono_ns)
        return np.asarray(np.interp(mono_ns, self.mono_ns, self.steps), dtype=np.float64)

    def during(self, mono_ns: Floats) -> Floats:
        """Like `at`, with nothing for moments before the first step and after the last: imports
        and clean-up are not what grows with the steps."""
        steps = self.at(mono_ns)
        if len(self.steps) >= 2:
            steps[(mono_ns < self.mono_ns[0]) | (mono_ns > self.mono_ns[-1])] = np.nan
        return steps


def best_source(recording: Recording, process: str) -> str | None:
    """The strongest source of steps of a process that covers enough of its life."""
    spans: dict[str, tuple[float, float, int]] = {}
    for source in recording.sources(process):
        if source not in CLOCKS:
            column = recording.columns(process, source).get("mono_ns", ())
            moments = [ns for ns in column if ns is not None]
            if len(moments) >= 2:
                spans[source] = (moments[0], moments[-1], len(moments))
    if not spans:
        return None
    whole = max(end for _, end, _ in spans.values()) - min(begin for begin, _, _ in spans.values())
    for source in sorted(spans, key=STRENGTH.index, reverse=True):
        begin, end, rows = spans[source]
        if rows >= _ROWS_TO_COUNT and end - begin >= _COVERAGE_TO_COUNT * whole:
            return source
    return max(spans, key=lambda source: spans[source][2])


def own_axis(recording: Recording, process: str, source: str) -> Axis:
    columns = recording.columns(process, source)
    pairs = [
        (ns, step)
        for ns, step in zip(columns.get("mono_ns", ()), columns.get("step", ()), strict=False)
        if ns is not None and step is not None
    ]
    mono_ns = np.array([ns for ns, _ in pairs], dtype=np.float64)
    steps = np.array([step for _, step in pairs], dtype=np.float64)
    # Two rows may share a step only around a change of source; the axis must rise.
    rising = np.concatenate(([True], np.diff(steps) > 0)) if len(steps) else np.array([], bool)
    counted = 0
    for mark in recording.marks:
        if mark.what == "end" and mark.process == process and mark.text == source:
            counted = mark.at.step or 0
    return Axis(source, process, mono_ns[rising], steps[rising], counted=counted)


def ticks_to_ns(recording: Recording, process: str, ticks: Floats) -> Floats:
    """When the agent's ticks with these numbers were, for what it wrote with a tick as its step."""
    columns = recording.columns(process, "tick")
    pairs = zip(columns.get("mono_ns", ()), columns.get("step", ()), strict=False)
    first = next(((ns, tick) for ns, tick in pairs if ns is not None and tick is not None), None)
    if first is None:
        return np.full_like(ticks, np.nan)
    return first[0] + (ticks - first[1]) * TICK_S * 1e9


def clock_axis(begin_ns: float, end_ns: float, stops: Sequence[tuple[float, float]] = ()) -> Axis:
    """No step was seen: the clock ticks, in the smallest round tick that keeps them countable.

    It stands still during `stops`, from and to, in which the program waited for us or loaded
    modules: in a program of 0.2 s, with looks of 15 ms, a straight line would seem to bend.
    """
    turns = sorted(
        (min(max(turn, begin_ns), end_ns), change)
        for stop in stops
        for turn, change in zip(stop, (1, -1), strict=True)
    )
    moments, lived_ns, stopped = [begin_ns], [0.0], 0
    for moment, change in [*turns, (end_ns, 0)]:
        lived_ns.append(lived_ns[-1] + (0.0 if stopped else moment - moments[-1]))
        moments.append(moment)
        stopped += change
    span_s = max(lived_ns[-1] / 1e9, _TICKS_S[0])
    tick_s = next((tick for tick in _TICKS_S if span_s / tick <= _MOST_TICKS), _TICKS_S[-1])
    steps = np.array(lived_ns) / 1e9 / tick_s
    return Axis("time", None, np.array(moments, dtype=np.float64), steps, tick_s)
