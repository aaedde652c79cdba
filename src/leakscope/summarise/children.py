"""What is worth saying about processes that are no more, and about how many there were."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leakscope import text
from leakscope.judge.series import RunSeries
from leakscope.model import ProcessSummary
from leakscope.record.format import MACHINE

_WORTH_SAYING = 16 << 20
_MANY_UNCLAIMED = 8
_MIDDLE, _LATE = 0.5, 0.9


def notes_on_children(run: RunSeries, processes: Sequence[ProcessSummary]) -> tuple[str, ...]:
    notes = (_gone(run, processes), _unclaimed(run))
    return tuple(note for note in notes if note is not None)


def _gone(run: RunSeries, processes: Sequence[ProcessSummary]) -> str | None:
    """Children that ended before the program did, and what they took while they lived."""
    gone = [one for one in processes if one.ended_early and one.peak_rss_bytes]
    highest = sum(one.peak_rss_bytes or 0 for one in gone)
    if highest < _WORTH_SAYING:
        return None
    at_once = _most_at_once(run, [one.process for one in gone])
    pids = {one.pid for one in processes}
    parents = {one.pid: one.parent_pid for one in processes}
    deeper = sum(parents.get(one.parent_pid, 0) in pids for one in gone)
    said = f"{text.plural(len(gone), 'process', 'processes')} ended before the program did"
    if deeper:
        said += f", {deeper} of them children of its children"
    return (
        f"{said}: up to {text.size(max(one.peak_rss_bytes or 0 for one in gone))} each and "
        f"{text.size(at_once)} at the same time (RSS, shared pages included). That memory is back."
    )


def _most_at_once(run: RunSeries, gone: Sequence[str]) -> float:
    changes: list[tuple[int, int]] = []
    for process in gone:
        columns = run.recording.columns(process, "time")
        last = 0
        for moment, rss in zip(
            columns.get("mono_ns", ()), columns.get("rss_bytes", ()), strict=False
        ):
            if moment is not None and rss is not None:
                changes.append((moment, rss - last))
                last = rss
        end = run.recording.ends.get(process)
        if end is not None:
            changes.append((end.at.mono_ns, -last))
    if not changes:
        return 0.0
    return float(np.max(np.cumsum([change for _, change in sorted(changes)])))


def _unclaimed(run: RunSeries) -> str | None:
    """Zombies: over, but nobody has asked how they ended."""
    column = run.recording.columns(MACHINE, "time").get("zombies_count", ())
    counts = [count for count in column if count is not None]
    if not counts:
        return None
    # A program that ends its children all at once has them as zombies for a moment, and on a busy
    # machine the moment was a tenth of a run: those that pile up were there by its middle.
    middle, late = (counts[int(share * len(counts))] for share in (_MIDDLE, _LATE))
    if late < _MANY_UNCLAIMED or middle < _MANY_UNCLAIMED / 2:
        return None
    return (
        f"{late} processes have ended and nobody has waited for them (zombies). They hold no "
        "memory, but each keeps its number, of which there are only so many: `wait()` for a Popen, "
        "`join()` for a Process."
    )
