"""The rows of each process in, panels out: few enough points to draw, no spike lost."""

from __future__ import annotations

import numpy as np

from leakscope.attribute.growth import Attribution
from leakscope.attribute.suspect import Suspect
from leakscope.judge.axis import Floats
from leakscope.judge.series import BLOCKS, HELD, IN_USE, RSS, USS, RunSeries
from leakscope.model import Curve, Finding, Panel, Report
from leakscope.summarise.layers import layers_of
from leakscope.summarise.thin import exactly_at, extremes

_PANELS = 12
"""A page with hundreds of ranks is no page; the table has all of them."""
_STRETCHES = 1500
"""Two points each on a screen of 1,500 points: more cannot be seen without zooming in."""
_STRETCHES_OF_OTHERS = 250
_SPARK = 40
_SPARKS = 256
_DRAWN = (IN_USE, HELD, RSS, USS, BLOCKS)


def panels_of(
    run: RunSeries, attribution: Attribution, names: dict[str, str], report: Report
) -> tuple[tuple[Panel, ...], int]:
    """The process that counts the steps first, then those that grow; and how many have none."""
    lead = run.axis.process
    growing = [account.process for account in attribution.accounts]
    order = dict.fromkeys((lead, *growing, *(process for _, process in run.rows)))
    drawn = [process for process in order if process and run.of(process)]
    findings = {finding.fingerprint: finding for finding in report.findings}
    panels = []
    for place, process in enumerate(drawn[:_PANELS]):
        explained = attribution.explained.get(process)
        suspects = [
            (suspect, findings[suspect.fingerprint])
            for suspect in (explained.suspects if explained is not None else ())
            if suspect.fingerprint in findings
        ]
        stretches = _STRETCHES_OF_OTHERS if place else _STRETCHES
        panels.append(_panel(run, process, names, suspects, stretches))
    return tuple(panels), len(drawn) - len(panels)


def _panel(
    run: RunSeries,
    process: str,
    names: dict[str, str],
    suspects: list[tuple[Suspect, Finding]],
    stretches: int,
) -> Panel:
    rows = {m: run.rows[m, process] for m in _DRAWN if (m, process) in run.rows}
    drawn = dict(rows)
    if RSS in rows:
        drawn[RSS] = _joined(rows[RSS], _from_outside(run, process))
    chosen = {metric: extremes(*pair, stretches) for metric, pair in drawn.items()}
    steps = np.unique(np.concatenate([drawn[m][0][picks] for m, picks in chosen.items()]))
    return Panel(
        process=names.get(process, process),
        steps=tuple(steps.tolist()),
        layers=layers_of(run, process, rows, steps, suspects),
        curves=tuple(
            Curve(metric, exactly_at(*drawn[metric], steps)) for metric in drawn if metric != BLOCKS
        ),
        rows=max(len(pair[0]) for pair in drawn.values()),
    )


def _from_outside(run: RunSeries, process: str) -> tuple[Floats, Floats]:
    """Resident memory as the supervisor saw it, which is between steps too."""
    columns = run.recording.columns(process, "time")
    pairs = zip(columns.get("mono_ns", ()), columns.get("rss_bytes", ()), strict=False)
    read = [(ns, rss) for ns, rss in pairs if ns is not None and rss is not None]
    if not read:
        return np.array([]), np.array([])
    both = np.array(read, dtype=np.float64)
    steps = run.axis_of(process).during(both[:, 0])
    inside = ~np.isnan(steps)
    return steps[inside], both[inside, 1]


def _joined(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Both in the order of steps; of two at the same step the first one's counts."""
    steps = np.concatenate((one[0], other[0]))
    values = np.concatenate((one[1], other[1]))
    order = np.argsort(steps, kind="stable")
    steps, values = steps[order], values[order]
    is_new = np.diff(steps, prepend=-np.inf) > 0
    return steps[is_new], values[is_new]


def sparks_of(run: RunSeries, names: dict[str, str]) -> dict[str, tuple[int, ...]]:
    """Resident memory of each process over its own life, for a line beside its name."""
    sparks = {}
    for process, name in list(names.items())[:_SPARKS]:
        sources = run.recording.sources(process)
        source = "time" if "time" in sources else sources[0] if sources else ""
        column = run.recording.columns(process, source).get("rss_bytes", ())
        read = [rss for rss in column if rss]
        if len(read) > 1:
            even = np.linspace(0, len(read) - 1, min(_SPARK, len(read))).astype(int)
            sparks[name] = tuple(read[place] for place in even.tolist())
    return sparks
