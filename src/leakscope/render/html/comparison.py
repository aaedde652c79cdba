"""Two runs side by side: what each says, which findings they share, what differs around them."""

from __future__ import annotations

import math
from typing import Any

from leakscope import text
from leakscope.model import Exhibit, Finding, Machine, Report
from leakscope.render import sentences
from leakscope.render.html.sections import sections
from leakscope.render.style import Style

_MOST = 60


def compared(one: Exhibit, other: Exhibit, style: Style) -> dict[str, Any]:
    """What the template shows of the second run, and of the two together."""
    first, second = one.report, other.report
    return {
        "against": sections(second, other.picture, style),
        "letters": ("A", "B"),
        "facts": [
            (label, told(first), told(second))
            for label, told in _FACTS
            if told(first) or told(second)
        ],
        "shared_findings": _findings(first, second),
        "machine_differences": _differences(first.machine, second.machine),
    }


def _rate(report: Report) -> str:
    worst = sentences.headline_verdict(report)
    if worst is None or not math.isfinite(worst.bytes_per_step.value):
        return ""
    rate = worst.bytes_per_step
    between = text.rate_between(rate.low, rate.high, worst.unit)
    return f"{text.rate(rate.value, worst.unit)} ({between})"


def _peak(report: Report) -> str:
    return "" if report.peak is None else text.size(report.peak.total_bytes)


_FACTS = (
    ("verdict", lambda report: report.verdict.value.upper()),
    ("because", lambda report: text.sentence(text.shorten(report.because, 500))),
    ("rate", _rate),
    ("forecast", lambda report: sentences.forecast(report) or ""),
    ("steps", sentences.steps),
    ("peak", _peak),
    ("program", lambda report: text.command_line(report.command)),
    ("ended", lambda report: sentences.ending(report) or "normally"),
)


def _findings(first: Report, second: Report) -> list[tuple[str, str, str]]:
    """Each finding once: what it is, and its rate in either run."""
    ours = {finding.fingerprint: finding for finding in first.findings}
    theirs = {finding.fingerprint: finding for finding in second.findings}
    rows = []
    for fingerprint in dict.fromkeys((*ours, *theirs)):
        either = ours.get(fingerprint) or theirs[fingerprint]
        title = f"{sentences.finding_title(either)} {_where(either)}".strip()
        rows.append((title, _told(ours.get(fingerprint)), _told(theirs.get(fingerprint))))
    return rows[:_MOST]


def _where(finding: Finding) -> str:
    site = finding.keeper or finding.site
    return sentences.place(site, has_function=False) if site is not None else ""


def _told(finding: Finding | None) -> str:
    return "not found" if finding is None else text.rate(finding.bytes_per_step)


def _differences(one: Machine, other: Machine) -> list[tuple[str, str, str]]:
    """What is not the same on both sides; packages by name."""
    rows = [
        (label, str(getattr(one, name) or ""), str(getattr(other, name) or ""))
        for label, name in _MACHINE
    ]
    for label, sides in (
        ("", (one.packages, other.packages)),
        ("", (one.allocator_settings, other.allocator_settings)),
    ):
        rows += [
            (label or name, sides[0].get(name, "absent"), sides[1].get(name, "absent"))
            for name in sorted({*sides[0], *sides[1]})
        ]
    for label, sizes in (
        ("RAM", (one.ram_bytes, other.ram_bytes)),
        ("memory limit", (one.limit_bytes, other.limit_bytes)),
    ):
        a, b = ("" if size is None else text.size(size) for size in sizes)
        rows.append((label, a, b))
    return [row for row in rows if row[1] != row[2]][:_MOST]


_MACHINE = (
    ("host", "host"),
    ("system", "system"),
    ("Python", "python"),
    ("C library", "libc"),
    ("allocator", "allocator"),
    ("cores", "cpu_count"),
)
