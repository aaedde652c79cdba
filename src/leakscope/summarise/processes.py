"""Who took part: every process of the tree, alive or finished, with a name people can use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from leakscope import text
from leakscope.judge.series import RunSeries
from leakscope.model import ProcessStart, ProcessSummary, Sample, Verdict
from leakscope.record.lineage import Lineage
from leakscope.record.reader import Recording

_HELPERS = {
    "multiprocessing.resource_tracker": "resource tracker",
    "multiprocessing.forkserver": "fork server",
}


def name_processes(recording: Recording) -> dict[str, str]:
    """`main`, `rank 3`, `rank 3 worker 0`, `child 4711`: short, and each used once."""
    lineage = recording.lineage()
    ranks = lineage.ranks()
    restarted = {place.rank for place in ranks.values() if place.restart}
    names = {
        process: _name(process, start, lineage, restarted)
        for process, start in recording.starts.items()
    }
    return _told_apart(names, recording.starts, lineage)


def _name(process: str, start: ProcessStart, lineage: Lineage, restarted: set[int]) -> str:
    place = lineage.place_of(process)
    of_rank = ""
    if place is not None:
        of_rank = f"rank {place.rank}"
        of_rank += f" restart {place.restart}" if place.rank in restarted else ""
        if lineage.is_rank(process):
            return of_rank
    if start.kind == "main":
        return "main"
    own = start.name or _helper(start) or f"{start.kind} {start.pid}"
    # A child of no known use has its number; whose it is shows in the parent's.
    is_told = start.name or start.kind == "helper"
    return f"{of_rank} {own}" if of_rank and is_told else own


def _helper(start: ProcessStart) -> str | None:
    line = " ".join(start.command[:4])
    return next((name for module, name in _HELPERS.items() if module in line), None)


def _told_apart(
    names: dict[str, str], starts: Mapping[str, ProcessStart], lineage: Lineage
) -> dict[str, str]:
    """Of several with one name: by the machine if that is enough, or else by number."""
    used = Counter(names.values())
    hosted = {
        process: name if used[name] == 1 else f"{name} on {lineage.host_of(process)}"
        for process, name in names.items()
    }
    if len({lineage.host_of(process) for process in names}) < 2:
        hosted = names
    used = Counter(hosted.values())
    return {
        process: name if used[name] == 1 else f"{names[process]} ({starts[process].pid})"
        for process, name in hosted.items()
    }


def summarise_processes(
    recording: Recording, run: RunSeries, names: dict[str, str]
) -> tuple[ProcessSummary, ...]:
    samples: dict[str, list[Sample]] = {}
    for sample in recording.samples:
        samples.setdefault(sample.process, []).append(sample)
    over_ns = _last_end_ns(recording)
    ranks = run.lineage.ranks()
    summaries = []
    for process, start in recording.starts.items():
        rss = _all_rss(recording, process)
        end = recording.ends.get(process)
        # wait4 tells the largest of a process and its children: only alone it is the process's.
        is_alone = len(recording.starts) == 1
        peak = end.values.get("peak_rss_bytes") if end and is_alone else None
        read = samples.get(process, [])
        values = read[-1].values if read else {}
        axis = run.axes.get(process)
        began = run.lineage.started_by(process)
        copied, allocated = _growth_of(read) if began in _FORKED else (None, None)
        place = ranks.get(process)
        summaries.append(
            ProcessSummary(
                process=process,
                kind="rank" if place is not None and start.kind != "main" else start.kind,
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
                last_pss_bytes=values.get("pss_bytes"),
                last_swap_bytes=values.get("swap_bytes"),
                last_shared_memory_bytes=values.get("shmem_bytes"),
                last_file_bytes=values.get("file_bytes"),
                copied_bytes=copied,
                allocated_bytes=allocated,
                started_by=began,
                ended_early=end is not None and end.at.mono_ns < over_ns - _SAME_MOMENT_NS,
                host=run.lineage.host_of(process),
                rank=place.rank if place is not None else None,
                restart=place.restart if place is not None else None,
            )
        )
    return tuple(summaries)


_FORKED = ("fork", "forkserver")
"""Only these have pages in common with their parent that writing makes their own."""

_SAME_MOMENT_NS = 500_000_000
"""Children that end with the program are noticed within so long of each other."""


def _last_end_ns(recording: Recording) -> int:
    return max((end.at.mono_ns for end in recording.ends.values()), default=0)


def _growth_of(samples: Sequence[Sample]) -> tuple[int | None, int | None]:
    """What a child's private memory grew by: pages it copied, and memory it asked for.

    A page that is copied was shared before and is private after, and resident memory stays as it
    is; memory that is asked for is private from the start. When the last other owner of a page is
    gone it counts as private too, so readings from the end of a family are left out.
    """
    whole = [s.values for s in samples if {"uss_bytes", "shared_bytes", "rss_bytes"} <= {*s.values}]
    if len(whole) < 3:
        return None, None
    first, last = whole[0], whole[-2]
    grown = max(last["uss_bytes"] - first["uss_bytes"], 0)
    copied = min(max(first["shared_bytes"] - last["shared_bytes"], 0), grown)
    return copied, grown - copied


def with_name(verdict: Verdict, names: dict[str, str]) -> Verdict:
    process = verdict.series.process
    return replace(verdict, series=replace(verdict.series, process=names.get(process, process)))


def _all_rss(recording: Recording, process: str) -> list[int]:
    sources = recording.sources(process)
    source = "time" if "time" in sources else sources[0] if sources else ""
    return [rss for rss in recording.columns(process, source).get("rss_bytes", ()) if rss]
