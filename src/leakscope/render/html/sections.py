"""The words of each section, ready for the template: what it shows, never how."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from leakscope import text
from leakscope.model import Excerpt, Finding, Picture, ProcessSummary, Report, Site
from leakscope.render import sentences
from leakscope.render.html.drawing import deciding
from leakscope.render.html.shapes import Bar, bars, road, spark_line
from leakscope.render.style import Style

_MOST_ROWS = 200
"""Of any table; `report.json` has the rest."""
_MOST_FINDINGS = 30
_MOST_BRANCHES = 120
_VALUES_SHOWN = 12
_LINES_OF_DIFF = 400


class Code(NamedTuple):
    """A place and the lines around it."""

    label: str
    where: str
    lines: tuple[tuple[int, str, bool], ...]
    """Number, text, and whether it is the one."""


def sections(report: Report, picture: Picture, style: Style) -> dict[str, Any]:
    """Everything the template asks for about one run."""
    return {
        "report": report,
        "verdict": report.verdict.value,
        "because": text.sentence(text.shorten(report.because, 2000)) or text.UNKNOWN,
        "title": f"{report.verdict.value.upper()} · {_program(report)}",
        "program": text.command_line(report.command) if report.command else "",
        "started": text.moment(report.started_wall_ns),
        "steps": sentences.steps(report),
        "ended": sentences.ending(report),
        "tiles": _tiles(report),
        "road": road(report),
        "no_line": sentences.no_line_named(report),
        "unexplained": sentences.unexplained(report),
        "findings": [
            _finding(report, picture, finding, number)
            for number, finding in enumerate(sentences.findings(report)[:_MOST_FINDINGS], 1)
        ],
        "findings_left_out": max(len(report.findings) - _MOST_FINDINGS, 0),
        "panels": picture.panels,
        "panels_left_out": picture.left_out,
        "rows_drawn": _rows_drawn(picture),
        "spans_left_out": picture.spans_left_out,
        "values": _values(picture),
        "tree": _tree(picture),
        "tree_at": text.count(picture.tree_at_step) if picture.tree_at_step is not None else "",
        "series": _series(report),
        "has_processes": len(report.processes) > 1,
        "processes": [_process(report, picture, one) for one in report.processes[:_MOST_ROWS]],
        "processes_left_out": max(len(report.processes) - _MOST_ROWS, 0),
        "peak": _peak(report),
        "notes": [*sentences.harmless(report), *report.notes],
        "machine": _machine(report),
        "packages": sorted(report.machine.packages.items())[:_MOST_ROWS],
        "blind_spots": sentences.blind_spots(report)[:_MOST_ROWS],
        "cost": sentences.cost(report),
        "next": sentences.next_commands(report, style.recording),
    }


def _program(report: Report) -> str:
    """The script or module, without the interpreter's path."""
    words = [word.rpartition("/")[2] for word in report.command]
    named = [word for word in words[1:] if not word.startswith("-")] or words
    return text.shorten(text.clean(named[0]), 60) if named else text.clean(report.run)


def _tiles(report: Report) -> list[tuple[str, str, str]]:
    """The figures that matter most: what, the figure, and what belongs to it."""
    tiles = []
    worst = sentences.headline_verdict(report)
    if worst is not None and sentences.is_growth(report.verdict):
        rate = worst.bytes_per_step
        between = text.rate_between(rate.low, rate.high, worst.unit)
        tiles.append(("grows by", text.rate(rate.value, worst.unit), between))
    elif smallest := sentences.smallest_visible(report):
        tiles.append(("smallest leak it would have shown", smallest.partition(" (")[0], ""))
    ahead = report.forecast
    if ahead is not None:
        left = ahead.seconds_left
        figure = text.duration(left.value) if left is not None else text.about(ahead.at_step)
        limit = f"at step {text.about(ahead.at_step)}"
        if left is not None and math.isfinite(left.low) and math.isfinite(left.high):
            limit += f", between {text.duration(left.low)} and {text.duration(left.high)}"
        tiles.append((f"until {text.size(ahead.limit_bytes)} are full", figure, limit))
    if sentences.is_growth(report.verdict) and report.findings:
        told = min(sum(f.share for f in report.findings if math.isfinite(f.share)), 1.0)
        found = text.plural(len(report.findings), "finding")
        tiles.append(("explained", text.percent(told), f"of the growth, by {found}"))
    each = "" if report.step_seconds is None else f"{text.duration(report.step_seconds)} each"
    tiles.append(("watched", text.plural(report.steps, "step"), each))
    if report.peak is not None:
        at = "" if report.peak.at_step is None else f"at step {text.count(report.peak.at_step)}"
        tiles.append(("peak", text.size(report.peak.total_bytes), at))
    return tiles


def _finding(report: Report, picture: Picture, finding: Finding, number: int) -> dict[str, Any]:
    diff = finding.fix.diff if finding.fix is not None else None
    return {
        "number": number,
        "id": f"finding-{number}",
        "fingerprint": finding.fingerprint,
        "rule": finding.rule,
        "name": finding.name,
        "says": text.sentence(text.shorten(finding.says, 2000)),
        "account": sentences.finding_account(report, finding, is_first=number == 1),
        "share": finding.share if math.isfinite(finding.share) else 0.0,
        "trace": sentences.trace(finding),
        "codes": _codes(picture, finding),
        "fix": finding.fix.text if finding.fix is not None else "",
        "diff": [_diff_line(line) for line in (diff or "").splitlines()[:_LINES_OF_DIFF]],
        "known": sentences.known_at(finding),
        "processes": sentences.finding_processes(report, finding),
    }


def _codes(picture: Picture, finding: Finding) -> list[Code]:
    """Keeper and site with their lines; one excerpt where they are the same line."""
    site, keeper = finding.site, finding.keeper
    excerpts = {(one.file, one.line): one for one in picture.excerpts}
    if site and keeper and (site.file, site.line) == (keeper.file, keeper.line):
        return [_code("kept and made at", keeper, excerpts)]
    codes = []
    if keeper is not None:
        codes.append(_code("kept by", keeper, excerpts))
    if site is not None:
        codes.append(_code("made at", site, excerpts))
    return codes


def _code(label: str, site: Site, excerpts: dict[tuple[str, int], Excerpt]) -> Code:
    excerpt = excerpts.get((site.file, site.line))
    if excerpt is None:
        source = sentences.source(site)
        return Code(label, sentences.place(site), ((site.line, source, True),) if source else ())
    lines = tuple(
        (number, line, number == site.line)
        for number, line in enumerate(excerpt.lines, excerpt.first_line)
    )
    return Code(label, sentences.place(site), lines)


def _diff_line(line: str) -> tuple[str, str]:
    """The kind of a line, for its colour, and the line."""
    if line.startswith(("+++", "---", "@@")):
        return "head", line
    return {"+": "more", "-": "less"}.get(line[:1], "same"), line


def _rows_drawn(picture: Picture) -> str:
    """Said where the chart has fewer points than there were rows."""
    if not picture.panels or picture.panels[0].rows <= len(picture.panels[0].steps):
        return ""
    panel = picture.panels[0]
    return (
        f"{text.count(panel.rows)} rows, drawn as {text.count(len(panel.steps))}: the lowest and "
        "the highest of each stretch"
    )


def _values(picture: Picture) -> dict[str, Any] | None:
    """The first panel as a small table, for those who do not see the chart."""
    if not picture.panels or not picture.panels[0].layers:
        return None
    panel = picture.panels[0]
    read = [place for place, value in enumerate(panel.layers[0].values) if value is not None]
    if not read:
        return None
    even = (n / (_VALUES_SHOWN - 1) for n in range(_VALUES_SHOWN))
    places = sorted({read[round((len(read) - 1) * share)] for share in even})
    return {
        "process": panel.process,
        "heads": [layer.name for layer in panel.layers],
        "rows": [
            (
                text.count(round(panel.steps[place], 1)),
                [text.size(layer.values[place] or 0.0) for layer in panel.layers],
                text.size(sum(layer.values[place] or 0.0 for layer in panel.layers)),
            )
            for place in places
        ],
    }


def _tree(picture: Picture) -> list[tuple[int, str, str, str]]:
    """The branches from the top down: depth, name, what it is, its size."""
    below: dict[int, list[int]] = {}
    for place, branch in enumerate(picture.tree):
        below.setdefault(branch.parent, []).append(place)
    rows: list[tuple[int, str, str, str]] = []
    waiting = [(0, place) for place in below.get(-1, ())]
    while waiting and len(rows) < _MOST_BRANCHES:
        depth, place = waiting.pop()
        branch = picture.tree[place]
        rows.append((depth, branch.name, branch.what, text.size(branch.bytes)))
        children = sorted(below.get(place, ()), key=lambda child: picture.tree[child].bytes)
        waiting += [(depth + 1, child) for child in children]
    return rows


def _series(report: Report) -> list[list[str]]:
    rows = []
    for verdict in sentences.by_severity(report.verdicts)[:_MOST_ROWS]:
        per_step = verdict.bytes_per_step
        rows.append(
            [
                sentences.process_name(report, verdict.series.process),
                sentences.metric_name(verdict.series),
                verdict.outcome.value,
                verdict.shape.value,
                text.rate(per_step.value, verdict.unit),
                text.rate_between(per_step.low, per_step.high, verdict.unit),
                f"{text.quantity(verdict.smallest_visible_bytes_per_step, verdict.unit)}/step",
                verdict.because,
            ]
        )
    return rows


def _process(report: Report, picture: Picture, process: ProcessSummary) -> dict[str, Any]:
    name = sentences.process_name(report, process.process)
    verdict = deciding(report, process.name)
    sizes = (process.first_rss_bytes, process.last_rss_bytes, process.peak_rss_bytes)
    return {
        "name": name,
        "pid": process.pid,
        "command": process.command,
        "steps": "" if process.steps is None else text.count(process.steps),
        "sizes": ["" if size is None else text.size(size) for size in sizes],
        "private": "" if process.last_uss_bytes is None else text.size(process.last_uss_bytes),
        "shared": "" if process.last_shared_bytes is None else text.size(process.last_shared_bytes),
        "ended": sentences.process_end(process)
        + ("" if process.is_followed else ", seen from outside only"),
        "outcome": verdict.outcome.value if verdict is not None else "",
        "rate": text.rate(verdict.bytes_per_step.value)
        if verdict is not None and sentences.is_growth(verdict.outcome)
        else "",
        "spark": spark_line(picture.sparks.get(process.name, ())),
    }


def _peak(report: Report) -> tuple[str, str, list[Bar]] | None:
    peak = report.peak
    if peak is None:
        return None
    step = "" if peak.at_step is None else f"at step {text.count(peak.at_step)}"
    return sentences.peak(peak), step, bars(peak.parts, peak.total_bytes)


def _machine(report: Report) -> list[tuple[str, str]]:
    machine = report.machine
    facts = [
        ("host", machine.host),
        ("system", machine.system),
        ("Python", machine.python),
        ("C library", machine.libc or ""),
        ("allocator", machine.allocator or ""),
        *sorted(machine.allocator_settings.items()),
        ("cores", text.count(machine.cpu_count)),
        ("RAM", "" if machine.ram_bytes is None else text.size(machine.ram_bytes)),
        (
            "memory limit",
            ""
            if machine.limit_bytes is None
            else f"{text.size(machine.limit_bytes)}, {machine.limit_from or 'limit'}",
        ),
        ("accelerators", ", ".join(machine.accelerators)),
        ("leakscope", report.leakscope),
        ("run", report.run),
    ]
    return [(name, value) for name, value in facts[:_MOST_ROWS] if value]
