"""A recording and the last report on it in, one moment of the view out: all that panels draw."""

from __future__ import annotations

import os
from typing import NamedTuple

from leakscope import text
from leakscope.follow.history import History, Point, Track
from leakscope.model import ProcessEnd, Report
from leakscope.record.reader import Recording
from leakscope.summarise.peak import roles_of, split
from leakscope.summarise.processes import name_processes

_SILENT_S = 10.0
"""The supervisor writes at least every second; ten without a word mean that it is gone."""


class Member(NamedTuple):
    """A process in its place in the tree."""

    name: str
    pid: int
    depth: int
    resident: int | None
    private: int | None
    is_followed: bool
    end: str
    """How it ended; empty while it runs."""


class Glimpse(NamedTuple):
    """What is known of a run at one moment."""

    directory: str
    program: str
    state: str
    is_over: bool
    seconds: float
    step: int | None
    is_by_steps: bool
    points: tuple[Point, ...]
    parts: dict[str, int]
    """What the memory of the drawn process consists of now; empty where it is not known."""
    members: tuple[Member, ...]
    report: Report | None
    """None until the run was judged for the first time."""
    judged_seconds_ago: float
    trouble: str
    """Why the recording could not be read or judged; empty if it could."""


class Judged(NamedTuple):
    """The last report, and how long ago it was made."""

    report: Report | None = None
    seconds_ago: float = 0.0
    trouble: str = ""


def glimpse(
    recording: Recording, history: History, judged: Judged, *, age_s: float, silent_s: float
) -> Glimpse:
    """Everything at once, from what has been read so far.

    Args:
        age_s: since the program was started, by the clock on the wall.
        silent_s: since anything was written to the recording.
    """
    end = main_end(recording)
    track = history.main(recording)
    if end is not None:
        age_s = max(end.at.mono_ns - recording.run.started_mono_ns, 0) / 1e9
    return Glimpse(
        directory=recording.directory,
        program=_program(recording.run.command),
        state=_state(recording, end, silent_s),
        is_over=end is not None,
        seconds=age_s if end is not None or silent_s < _SILENT_S else max(age_s - silent_s, 0.0),
        step=_step(track, judged.report, is_over=end is not None),
        is_by_steps=track is not None and track.is_by_steps,
        points=tuple(track.points) if track is not None else (),
        parts=_parts(recording, history, track.process if track is not None else None),
        members=_members(recording, history),
        report=judged.report,
        judged_seconds_ago=judged.seconds_ago,
        trouble=judged.trouble,
    )


def main_end(recording: Recording) -> ProcessEnd | None:
    """How the program ended, once it has."""
    for process, start in recording.starts.items():
        if start.kind == "main":
            return recording.ends.get(process)
    return None


def _program(command: tuple[str, ...]) -> str:
    """As it would be typed, without the folder that the interpreter is in."""
    return text.command_line((os.path.basename(command[0]), *command[1:])) if command else ""


def _step(track: Track | None, report: Report | None, *, is_over: bool) -> int | None:
    """The last one told; the last one made, once that is known."""
    if track is None or not track.is_by_steps:
        return None
    return report.steps if is_over and report is not None else track.last.get("step")


def _state(recording: Recording, end: ProcessEnd | None, silent_s: float) -> str:
    if end is not None:
        return _ended(end) or "ended"
    if silent_s >= _SILENT_S:
        return f"no news for {text.duration(round(silent_s))}"
    return "running" if recording.starts else "starting"


def _ended(end: ProcessEnd) -> str:
    if end.signal is not None:
        return f"killed by {text.signal_name(end.signal)}"
    return f"ended with {end.exit_code}" if end.exit_code is not None else ""


def _parts(recording: Recording, history: History, process: str | None) -> dict[str, int]:
    if process is None:
        return {}
    resident = history.last(process, "rss_bytes")
    in_use = history.last(process, "in_use_bytes")
    if resident is None or in_use is None:
        return {}
    held = history.last(process, "held_bytes") or 0
    return split(resident, roles_of(recording, process), in_use, held)


def _members(recording: Recording, history: History) -> tuple[Member, ...]:
    """The process tree, each parent before its children."""
    names = name_processes(recording)
    private = {
        sample.process: sample.values["uss_bytes"]
        for sample in recording.samples
        if "uss_bytes" in sample.values
    }
    alive = {one.pid: process for process, one in recording.starts.items()}
    children: dict[str | None, list[str]] = {}
    for process, start in recording.starts.items():
        parent = alive.get(start.parent_pid)
        children.setdefault(parent if parent != process else None, []).append(process)
    members: list[Member] = []
    waiting = [(process, 0) for process in reversed(children.pop(None, []))]
    while waiting:
        process, depth = waiting.pop()
        start = recording.starts[process]
        end = recording.ends.get(process)
        members.append(
            Member(
                name=text.clean(names[process]),
                pid=start.pid,
                depth=depth,
                resident=history.last(process, "rss_bytes") if end is None else None,
                private=private.get(process) if end is None else None,
                is_followed=process in recording.followed,
                end="" if end is None else _ended(end) or "ended",
            )
        )
        waiting += [(child, depth + 1) for child in reversed(children.pop(process, []))]
    return tuple(members)
