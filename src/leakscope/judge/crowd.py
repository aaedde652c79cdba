"""Starts and ends of processes in, an account out where ever more of them stay alive.

Each of them may be steady; the program grows all the same, by one process after the other.
"""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakscope import text
from leakscope.judge.account import Account
from leakscope.judge.series import RunSeries
from leakscope.judge.verdict import judge
from leakscope.model import Outcome, Rate, Series, SeriesKey, Shape, Verdict
from leakscope.record.format import MACHINE

CHILDREN = "tree.children_bytes"

_FEWEST = 8
"""Children at the end. Pools and loaders have as many as there are cores, from the start on."""
_POINTS = 120
_NOTICED_NS = 50e6
"""An end is noticed by a walk, which takes some milliseconds: that walk came too late. In the run
that showed it the ends were written 0 to 20 ms after the walk; no other value was tried."""
_STAYING = 0.5
"""Of the children that were started, so many are still there: those of a server come and go."""


class Crowd(NamedTuple):
    """The children of one process, of which there are more and more."""

    parent: str
    account: Account
    children: tuple[str, ...]
    """Alive at the end."""
    counts: tuple[tuple[int, int], ...]
    """(step, how many were alive), at a third of the run and at its end."""
    bytes_each: float
    per_step: float

    @property
    def process(self) -> str:
        return crowd_of(self.parent)


_PREFIX = "children of "


def crowd_of(parent: str) -> str:
    return f"{_PREFIX}{parent}"


def parent_in(process: str) -> str:
    """Whose children they are; empty for a process that is none of these."""
    return process.removeprefix(_PREFIX) if process.startswith(_PREFIX) else ""


def find_crowds(run: RunSeries) -> tuple[Crowd, ...]:
    """Parents whose children pile up."""
    families: dict[str, list[str]] = {}
    for process, start in run.recording.starts.items():
        parent = run.lineage.parent_of(process)
        if parent is not None and start.kind != "helper":
            families.setdefault(parent, []).append(process)
    found = (
        _crowd(run, parent, children)
        for parent, children in families.items()
        if len(children) >= _FEWEST
    )
    return tuple(crowd for crowd in found if crowd is not None)


def _crowd(run: RunSeries, parent: str, children: list[str]) -> Crowd | None:
    axis = run.axis_of(parent)
    if len(axis.steps) < 2:
        return None
    begins = np.array([run.recording.starts[child].at.mono_ns for child in children], float)
    ends = np.array([_end_ns(run, child) for child in children], float)
    over = min(float(axis.mono_ns[-1]), _last_walk_ns(run, _first_end_ns(begins, ends)))
    if over <= axis.mono_ns[0]:
        return None
    moments = np.linspace(axis.mono_ns[0], over, _POINTS)
    alive = (begins[:, None] <= moments) & (ends[:, None] > moments)
    counts = alive.sum(axis=0)
    staying = tuple(child for child, end in zip(children, ends, strict=True) if end >= over)
    if len(staying) < max(_FEWEST, _STAYING * len(children)):
        return None
    third, last = int(counts[_POINTS // 3]), int(counts[-1])
    steps = axis.at(moments)
    rising = np.concatenate(([True], np.diff(steps) > 0))
    series = Series(
        SeriesKey(CHILDREN, crowd_of(parent)),
        "processes",
        tuple(steps[rising].tolist()),
        tuple(counts[rising].astype(float).tolist()),
        is_exact=True,
        resolution=1.0,
    )
    verdict = judge(series)
    if verdict.outcome is not Outcome.GROWING or last <= third:
        return None
    each = _private_bytes(run, staying)
    account = Account(crowd_of(parent), _in_bytes(verdict, each, last), ())
    whole = account._replace(verdicts=(account.verdict,))
    first_step, last_step = int(steps[_POINTS // 3]), max(int(steps[-1]), 1)
    seen = ((first_step, third), (last_step, last))
    return Crowd(parent, whole, staying, seen, each, verdict.bytes_per_step.value)


def _first_end_ns(begins: NDArray[np.float64], ends: NDArray[np.float64]) -> float:
    """When the first of them ended after the last had begun: the end of the crowd."""
    return float(np.min(ends[ends > begins.max()], initial=np.inf))


def _last_walk_ns(run: RunSeries, ended_ns: float) -> float:
    """When the tree was last walked before they ended: nobody knows of those that came later, and
    the number does not stand still for that. A walk that comes when the program has killed them
    all finds none of the last few: one run in five of thirty processes was STEADY."""
    column = run.recording.columns(MACHINE, "time").get("tree_mono_ns", ())
    before = (moment for moment in column if moment and moment < ended_ns - _NOTICED_NS)
    return float(max(before, default=np.inf))


def _end_ns(run: RunSeries, child: str) -> float:
    """Those that only ended with the program have not ended by themselves."""
    end = run.recording.ends.get(child)
    return float(end.at.mono_ns) if end is not None else float("inf")


def _private_bytes(run: RunSeries, children: tuple[str, ...]) -> float:
    last = {
        sample.process: sample.values["uss_bytes"]
        for sample in run.recording.samples
        if "uss_bytes" in sample.values
    }
    known = [last[child] for child in children if child in last]
    return float(median(known)) if known else 0.0


def _in_bytes(verdict: Verdict, each: float, now: int) -> Verdict:
    count = verdict.bytes_per_step
    rate = Rate(count.value * each, count.low * each, count.high * each)
    because = (
        f"{count.value:,.2g} more processes stay alive with every step, {now} at the end, "
        f"with {text.size(each)} of private memory each: {text.size(rate.value)} per step."
    )
    return Verdict(
        series=verdict.series,
        outcome=Outcome.GROWING,
        shape=Shape.LINEAR,
        because=because,
        bytes_per_step=rate,
        smallest_visible_bytes_per_step=verdict.smallest_visible_bytes_per_step * each,
        from_step=verdict.from_step,
        to_step=verdict.to_step,
        grown_bytes=verdict.grown_bytes * each,
    )
