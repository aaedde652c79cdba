"""What happened when: phases, saves, full collections and looks, on the axis of steps."""

from __future__ import annotations

import numpy as np

from leakscope import text
from leakscope.judge.axis import CLOCKS
from leakscope.judge.series import RunSeries
from leakscope.model import LOOKS, Mark, Span

_WHAT = {"save": "checkpoint", "collection": "collection", "look": "look", "look done": "look"}
_MOST = 300
"""Of one kind in one process; more lines than that are a grey area."""
_FEWEST_ROWS = 8
"""A forward pass or two without an optimizer step is no evaluation."""
_TRAINS, _FORWARD = "optimizer", "forward"


def spans_of(
    run: RunSeries, processes: tuple[str, ...], names: dict[str, str]
) -> tuple[tuple[Span, ...], int]:
    """All spans of these processes, and how many were left out because there were too many."""
    spans: list[Span] = []
    left_out = 0
    for process in processes:
        name = names.get(process, process)
        spans += _phases(run, process, name)
        for what in dict.fromkeys(_WHAT.values()):
            found = _points(run, process, name, what)
            every = -(-len(found) // _MOST)
            spans += found[:: max(every, 1)]
            left_out += len(found) - len(found[:: max(every, 1)])
    return tuple(spans), left_out


def _points(run: RunSeries, process: str, name: str, what: str) -> list[Span]:
    """Marks of one kind; several within one step are one."""
    marks = [m for m in run.recording.marks if m.process == process and _WHAT.get(m.what) == what]
    axis = run.axis_of(process)
    steps = axis.during(np.array([mark.at.mono_ns for mark in marks], dtype=np.float64)).tolist()
    spans: dict[int, Span] = {}
    for mark, moment in zip(marks, steps, strict=True):
        if moment != moment:
            continue  # before the first step, or after the last
        # Between two rows the clock only guesses the step; the agent that counts it knows.
        is_counted = axis.process == process and mark.source in ("", axis.source)
        step = float(mark.at.step) if is_counted and mark.at.step is not None else moment
        spans.setdefault(int(step), Span(name, what, step, step, _says(mark)))
    return list(spans.values())


def _says(mark: Mark) -> str:
    if mark.what in LOOKS:
        return f"{mark.text or 'look'}, {text.duration(mark.duration_ns / 1e9)}"
    if mark.what == "collection" and (collected := mark.values.get("collected_count")) is not None:
        return f"{text.plural(collected, 'object')} freed"
    return ""


def _phases(run: RunSeries, process: str, name: str) -> list[Span]:
    """Stretches of rows from one source, where the source tells what the program was doing."""
    recording = run.recording
    moments: list[tuple[int, str]] = []
    for source in recording.sources(process):
        if source in CLOCKS or source in ("dataloader", "api"):
            continue
        column = recording.columns(process, source).get("mono_ns", ())
        moments += [(ns, source) for ns in column if ns is not None]
    moments.sort()
    if not moments:
        return []
    trains = run.sources.get(process) == _TRAINS
    first_training = next((ns for ns, source in moments if source == _TRAINS), None)
    words = {
        _TRAINS: "train",
        _FORWARD: "evaluate" if first_training is not None else "predict",
        "fetch": "load",
    }
    stretches: list[tuple[str, int, int, int]] = []
    for ns, source in moments:
        if trains and source != _TRAINS and first_training is not None and ns < first_training:
            continue
        if stretches and stretches[-1][0] == source:
            _, begin, _, count = stretches[-1]
            stretches[-1] = (source, begin, ns, count + 1)
        else:
            stretches.append((source, ns, ns, 1))
    axis = run.axis_of(process)
    spans = []
    for source, begin, end, count in stretches:
        if source != _TRAINS and count < _FEWEST_ROWS:
            continue
        ends = axis.at(np.array([begin, end], dtype=np.float64)).tolist()
        says = text.duration((end - begin) / 1e9)
        spans.append(Span(name, words.get(source, source), ends[0], ends[1], says))
    return spans
