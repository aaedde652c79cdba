"""What is simply so: how long it took, how it ended, what memory is left, what was not seen."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from leakscope import text
from leakscope.judge.series import RunSeries
from leakscope.model import LOOKS, Cost, Ending, Gap, ProcessEnd
from leakscope.record.format import MACHINE as _MACHINE
from leakscope.record.format import machine_rows
from leakscope.record.reader import Recording

_ALMOST_FULL = 0.9


class MemoryNow(NamedTuple):
    """The limit that will be met first, and how far it is used at the end of the record."""

    limit_bytes: int
    limit_from: str
    used_bytes: int


def memory_now(recording: Recording, host: str = "") -> MemoryNow | None:
    """Of one machine; of the only one there is, where no name is given."""
    run = recording.run
    machine = run.hosts.get(host, run.machine)
    rows = machine_rows(host) if host in run.hosts else _MACHINE
    if machine.limit_bytes is None:
        return None
    limit_from = machine.limit_from or "limit"
    if "cgroup" in limit_from:
        used = _last(recording, "cgroup_use_bytes", rows)
        cache = _last(recording, "page_cache_bytes", rows) or 0
        # Page cache is counted in the cgroup's use, and given back before anything is killed.
        used = max(used - cache, 0) if used is not None else None
    else:
        available = _last(recording, "available_bytes", rows)
        used = machine.limit_bytes - available if available is not None else None
    if used is None:
        used = sum(_last_rss(recording, process) or 0 for process in recording.pulsed())
    return MemoryNow(machine.limit_bytes, limit_from, used)


def ending_of(recording: Recording, run: RunSeries) -> Ending:
    end = _main_end(recording)
    if end is None:
        says = "the recording stops before the program's end"
        if not any(start.kind == "main" for start in recording.starts.values()):
            says = "watched from inside; the program's end is not part of the record"
        return Ending(None, None, says)
    step = run.axis.last_step
    where = f" at step {text.count(step)}" if run.axis.source != "time" and step else ""
    if end.signal is not None:
        name = text.signal_name(end.signal)
        return Ending(None, end.signal, f"killed by {name}{where}{_fullness(recording)}")
    if end.exit_code:
        return Ending(end.exit_code, None, f"exited with {end.exit_code}{where}")
    return Ending(end.exit_code, None, "ended normally")


def _fullness(recording: Recording) -> str:
    """How full memory was at the end, if that may have been the reason."""
    kills = [count for count in _column(recording, "oom_kills_count") if count is not None]
    said = "; the kernel's OOM killer did it" if kills and kills[-1] > kills[0] else ""
    machine = recording.run.machine
    if machine.limit_bytes is None:
        return said
    limit_from = machine.limit_from or "limit"
    name = "cgroup_use_bytes" if "cgroup" in limit_from else "available_bytes"
    values = [value for value in _column(recording, name) if value is not None]
    if not values:
        return said
    # The last reading may be from after the kill, when the memory is free again.
    used = max(values[-20:]) if "cgroup" in limit_from else machine.limit_bytes - min(values[-20:])
    share = min(used / machine.limit_bytes, 1.0)
    if share >= _ALMOST_FULL or said:
        said += f"; memory was at {text.percent(share)} of the {limit_from}"
    return said


def blind_spots_of(recording: Recording, others: Sequence[Gap] = ()) -> tuple[Gap, ...]:
    """Everything that could not be observed, or explained, each thing once."""
    spots = list(dict.fromkeys((gap.what, gap.why) for gap in (*recording.gaps, *others)))
    if recording.torn_lines:
        lines = text.plural(recording.torn_lines, "line")
        spots.append((f"{lines} of the recording", "torn: the writer was stopped in the middle"))
    if recording.unknown_records:
        records = text.plural(recording.unknown_records, "record")
        spots.append((records, "of a kind this version of leakscope does not know"))
    for process, start in recording.starts.items():
        is_named = any(gap.process == process for gap in recording.gaps)
        if process not in recording.followed and _is_python(start.command) and not is_named:
            why = (
                "a Python that did not load the agent (its environment was replaced, or it ended "
                "too early)"
            )
            spots.append((f"inside of process {start.pid}", why))
    return tuple(Gap(what, why) for what, why in spots)


def cost_of(recording: Recording) -> Cost:
    looks = [mark for mark in recording.marks if mark.what in LOOKS]
    spent_on_looks = {
        mark.process: max(mark.values.get("spent_ns", 0), 0) for mark in looks
    }  # the last of each process has the sum
    spent_s = (sum(recording.spent_ns.values()) + sum(spent_on_looks.values())) / 1e9
    seconds = seconds_of(recording)
    return Cost(
        longest_pause_seconds=max((mark.duration_ns for mark in looks), default=0) / 1e9,
        agent_seconds=spent_s,
        agent_share=spent_s / seconds if seconds else 0.0,
        supervisor_cpu_seconds=_supervisor_seconds(recording),
        recording_bytes=recording.size_bytes,
    )


def seconds_of(recording: Recording) -> float:
    last = max(
        (
            ns
            for process in recording.pulsed()
            for source in recording.sources(process)
            for ns in recording.columns(process, source).get("mono_ns", [])[-1:]
            if ns is not None
        ),
        default=recording.run.started_mono_ns,
    )
    end = _main_end(recording)
    if end is not None:
        last = end.at.mono_ns
    return max(last - recording.run.started_mono_ns, 0) / 1e9


def _supervisor_seconds(recording: Recording) -> float:
    end = _main_end(recording)
    return (end.values.get("supervisor_cpu_ns", 0) if end else 0) / 1e9


def _main_end(recording: Recording) -> ProcessEnd | None:
    """How the program ended; of a merged job's several, the one that went wrong."""
    mains = [process for process, start in recording.starts.items() if start.kind == "main"]
    ends = [recording.ends[process] for process in mains if process in recording.ends]
    wrong = [end for end in ends if end.signal is not None or end.exit_code]
    return next(iter(wrong or ends), None)


def _is_python(command: tuple[str, ...]) -> bool:
    name = os.path.basename(command[0]) if command else ""
    return name.startswith("python") or (bool(command) and command[0] == sys.executable)


def _column(recording: Recording, name: str, rows: str = _MACHINE) -> list[int | None]:
    return recording.columns(rows, "time").get(name, [])


def _last(recording: Recording, name: str, rows: str) -> int | None:
    column = _column(recording, name, rows)
    return next((value for value in reversed(column) if value is not None), None)


def _last_rss(recording: Recording, process: str) -> int | None:
    for source in recording.sources(process):
        column = recording.columns(process, source).get("rss_bytes", [])
        if column and column[-1] is not None:
            return column[-1]
    return None
