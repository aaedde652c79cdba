"""Recording → Chrome trace JSON: counters and marks on one time line, for ui.perfetto.dev."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from leakscope import text
from leakscope.model import Mark, Report
from leakscope.record.reader import Recording

Event = dict[str, Any]

_COUNTERS = {
    "rss_bytes": "resident (RSS)",
    "in_use_bytes": "C heap, in use",
    "held_bytes": "C heap, held free",
    "blocks_count": "Python blocks",
}


def export(recording: Recording, report: Report) -> str:
    """Every row that was recorded. Times are microseconds since the run began."""
    events = [*_names(recording, report), *_rows(recording), *_marks(recording)]
    events.sort(key=lambda event: float(event.get("ts", 0.0)))
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}) + "\n"


def _names(recording: Recording, report: Report) -> Iterator[Event]:
    for summary in report.processes:
        name = text.clean(summary.name) or str(summary.pid)
        yield {"ph": "M", "name": "process_name", "pid": summary.pid, "args": {"name": name}}


def _rows(recording: Recording) -> Iterator[Event]:
    for process in recording.pulsed():
        pid = _pid(recording, process)
        if pid is None:
            continue
        for source in recording.sources(process):
            columns = recording.columns(process, source)
            moments = columns.get("mono_ns", [])
            for counter, name in _COUNTERS.items():
                unit = "bytes" if counter.endswith("_bytes") else "count"
                for ns, value in zip(moments, columns.get(counter, ()), strict=False):
                    if ns is not None and value is not None:
                        at = _micros(recording, ns)
                        yield {"ph": "C", "name": name, "pid": pid, "ts": at, "args": {unit: value}}


def _marks(recording: Recording) -> Iterator[Event]:
    """Saves, collections, looks: with the time they took where they took any."""
    for mark in recording.marks:
        pid = _pid(recording, mark.process)
        if pid is None:
            continue
        began = _micros(recording, mark.at.mono_ns - mark.duration_ns)
        event = {"name": text.clean(mark.what), "pid": pid, "tid": pid, "ts": began}
        yield event | _kind(mark)


def _kind(mark: Mark) -> Event:
    args: Event = {} if mark.at.step is None else {"step": mark.at.step}
    if mark.duration_ns:
        return {"ph": "X", "dur": mark.duration_ns / 1000, "args": args}
    return {"ph": "i", "s": "p", "args": args}


def _pid(recording: Recording, process: str) -> int | None:
    start = recording.starts.get(process)
    return start.pid if start is not None else None


def _micros(recording: Recording, mono_ns: int) -> float:
    return (mono_ns - recording.run.started_mono_ns) / 1000
