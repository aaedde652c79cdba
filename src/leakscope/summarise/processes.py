"""Who took part: every process of the tree, alive or finished, with a name people can use."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from leakscope import text
from leakscope.judge.series import RunSeries
from leakscope.model import ProcessStart, ProcessSummary, Sample, Verdict
from leakscope.record.reader import Recording


def name_processes(recording: Recording) -> dict[str, str]:
    """`main`, `rank 3`, `rank 3 worker 0`, `child 4711`: short, and each used once."""
    by_pid = {start.pid: start for start in recording.starts.values()}
    names = {
        process: _name(start, by_pid.get(start.parent_pid))
        for process, start in recording.starts.items()
    }
    used = Counter(names.values())
    return {
        process: name if used[name] == 1 else f"{name} ({recording.starts[process].pid})"
        for process, name in names.items()
    }


def _name(start: ProcessStart, parent: ProcessStart | None) -> str:
    rank = start.environment.get("RANK", start.environment.get("SLURM_PROCID"))
    if start.kind == "worker":
        return f"rank {rank} {start.name}" if rank is not None else str(start.name)
    # Children inherit the variable; only the process whose parent lacks it is the rank itself.
    parent_rank = parent.environment.get("RANK") if parent else None
    if rank is not None and parent_rank is None and start.kind != "main":
        return f"rank {rank}"
    if start.kind == "main":
        return "main"
    return f"{start.kind} {start.pid}"


def summarise_processes(
    recording: Recording, run: RunSeries, names: dict[str, str]
) -> tuple[ProcessSummary, ...]:
    last: dict[str, Sample] = {}
    for sample in recording.samples:
        last[sample.process] = sample
    summaries = []
    for process, start in recording.starts.items():
        rss = _all_rss(recording, process)
        end = recording.ends.get(process)
        # wait4 tells the largest of a process and its children: only alone it is the process's.
        is_alone = len(recording.starts) == 1
        peak = end.values.get("peak_rss_bytes") if end and is_alone else None
        values = last[process].values if process in last else {}
        axis = run.axes.get(process)
        summaries.append(
            ProcessSummary(
                process=process,
                kind=start.kind,
                name=names[process],
                pid=start.pid,
                parent_pid=start.parent_pid,
                command=text.command_line(start.command),
                steps=axis.last_step if axis is not None else None,
                first_rss_bytes=rss[0] if rss else None,
                last_rss_bytes=rss[-1] if rss else None,
                peak_rss_bytes=max([*rss, *([peak] if peak else [])], default=None),
                last_uss_bytes=values.get("uss_bytes"),
                last_shared_bytes=values.get("shared_bytes"),
                exit_code=end.exit_code if end else None,
                signal=end.signal if end else None,
                is_followed=process in recording.followed,
            )
        )
    return tuple(summaries)


def with_name(verdict: Verdict, names: dict[str, str]) -> Verdict:
    process = verdict.series.process
    return replace(verdict, series=replace(verdict.series, process=names.get(process, process)))


def _all_rss(recording: Recording, process: str) -> list[int]:
    sources = recording.sources(process)
    source = "time" if "time" in sources else sources[0] if sources else ""
    return [rss for rss in recording.columns(process, source).get("rss_bytes", ()) if rss]
