"""Two reports in, what became of the growth out: gone, smaller, unchanged, larger, or not known.

"Gone" takes three things: no finding of the run before is found again, the rate fell by what it
was, and what is left, or could have been missed, is small beside what there was. A quiet run that
is too short or too noisy to tell proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from leakscope import text
from leakscope.comparison import difference
from leakscope.model import Finding, Outcome, Rate, Report, Verdict

VERIFICATION_SCHEMA = 1

GROWS = (Outcome.LEAK, Outcome.GROWING)

_RSS = "process.rss_bytes"

_LEFT = 0.2
"""Of the rate before: growth that may be left unseen, by its interval, in what is called gone.
Rates of repeated runs of one program differ by less."""

_REST = 0.05
"""Of the rate before: growth that is left and seen, such as that of a list of numbers which used to
be a list of graphs. It has to lie within the noise of what there was, too."""

_SAME = 0.5
"""Of a finding's rate before: below that it is called smaller. Looks are few, and the rate of one
holder varies more from run to run than that of the process."""

_FEWEST_STEPS = 0.5
"""Of the steps before: a run that ended earlier is no comparison. Ticks of the clock are not
counted: a program that keeps less is often faster."""


class Change(StrEnum):
    GONE = "gone"
    SMALLER = "smaller"
    UNCHANGED = "unchanged"
    LARGER = "larger"
    NEW = "new"
    UNKNOWN = "unknown"


class FindingChange(msgspec.Struct, frozen=True):
    """What became of one finding."""

    fingerprint: str
    rule: str
    name: str
    change: Change
    before_bytes_per_step: float
    after_bytes_per_step: float
    where: str = ""
    """File and line of its keeping statement, or of its maker."""


class Verification(msgspec.Struct, frozen=True):
    """Whether a change to the program stopped its growth."""

    schema: int
    change: Change
    because: str
    before_run: str
    after_run: str
    before_verdict: Outcome
    after_verdict: Outcome
    series: str
    """The counter that was compared, and its process."""
    before_bytes_per_step: Rate | None
    after_bytes_per_step: Rate | None
    less_bytes_per_step: Rate | None
    """How much the rate fell, with its interval."""
    findings: tuple[FindingChange, ...]

    @property
    def exit_code(self) -> int:
        if self.change is Change.GONE:
            return 0
        return 3 if self.change is Change.UNKNOWN else 1


def compare(before: Report, after: Report) -> Verification:
    """Compare a run that grew with one of the changed program."""
    lead, same = _pair(before, after)
    reason = _not_comparable(before, after, lead, same)
    change, because = Change.UNKNOWN, reason
    if lead is not None and same is not None and not reason:
        change, because = _overall(before, after, lead, same)
    less = difference(lead.bytes_per_step, same.bytes_per_step) if lead and same else None
    return Verification(
        schema=VERIFICATION_SCHEMA,
        change=change,
        because=because,
        before_run=before.run,
        after_run=after.run,
        before_verdict=before.verdict,
        after_verdict=after.verdict,
        series=f"{lead.series.metric} {lead.series.process}" if lead is not None else "",
        before_bytes_per_step=lead.bytes_per_step if lead is not None else None,
        after_bytes_per_step=same.bytes_per_step if same is not None else None,
        less_bytes_per_step=less,
        findings=tuple(_findings(before, after, less, is_known=not reason)),
    )


def _pair(before: Report, after: Report) -> tuple[Verdict | None, Verdict | None]:
    """The series that grew most, and the same one in the run after; memory in use before resident
    memory. A sum over processes is made only where it grows, and may have no partner."""
    growing = [v for v in before.verdicts if v.outcome in GROWS and v.unit == "bytes"]
    growing.sort(key=lambda v: (v.series.metric == _RSS, -v.bytes_per_step.value))
    for lead in growing:
        if (same := _same(lead, after)) is not None:
            return lead, same
    return (growing[0] if growing else None), None


def _same(lead: Verdict, report: Report) -> Verdict | None:
    """The same counter of the same process in another run; names of processes may differ."""
    same = [v for v in report.verdicts if v.series.metric == lead.series.metric]
    exact = [v for v in same if v.series.process == lead.series.process]
    return exact[0] if exact else same[0] if len(same) == 1 else None


def _overall(before: Report, after: Report, lead: Verdict, same: Verdict) -> tuple[Change, str]:
    was, now = lead.bytes_per_step, same.bytes_per_step
    less = difference(was, now)
    rates = f"{text.rate(was.value)} before, {text.rate(now.value)} now"
    between = f"({text.rate_between(now.low, now.high)})"
    if after.verdict is Outcome.UNKNOWN:
        return Change.UNKNOWN, f"{rates}, and there is no verdict on the rest: {after.because}"
    if after.verdict not in GROWS:
        left = max(now.high, 0.0)
        if left > _LEFT * was.value or less.low <= 0:
            return Change.UNKNOWN, (
                f"{rates} {between}: no growth is seen, but the run is too short or too noisy to "
                "say that it fell by what it was"
            )
        return Change.GONE, f"{rates} {between}; the run is {after.verdict.value}"
    is_found_again = {one.fingerprint for one in before.findings} & {
        one.fingerprint for one in after.findings
    }
    is_rest = now.high <= _REST * was.value and less.high >= was.value
    if is_rest and before.findings and not is_found_again:
        share = text.percent(now.value / was.value)
        return Change.GONE, f"{rates} {between}: {share} of it is left"
    if less.low > 0:
        return Change.SMALLER, f"{rates} {between}: it still grows"
    if less.high < 0:
        return Change.LARGER, f"{rates} {between}"
    if before.findings and not is_found_again:
        return Change.UNKNOWN, (
            f"{rates} {between}: what was found before is not found again, but the growth is "
            "within the noise of what it was"
        )
    return Change.UNCHANGED, f"{rates} {between}"


def _not_comparable(
    before: Report, after: Report, lead: Verdict | None, same: Verdict | None
) -> str:
    if lead is None:
        return "no series of the run before grew by itself"
    if after.ending.exit_code != before.ending.exit_code and after.ending.exit_code:
        return f"the program ended with exit status {after.ending.exit_code} this time"
    if after.ending.signal is not None and before.ending.signal is None:
        return f"the program was ended by {text.signal_name(after.ending.signal)} this time"
    if after.steps_from != before.steps_from:
        return f"steps were {before.steps_from}'s before and are {after.steps_from}'s now"
    if after.steps_from != "time" and after.steps < _FEWEST_STEPS * before.steps:
        return f"it made {text.count(before.steps)} steps before and {text.count(after.steps)} now"
    if same is None:
        return f"{text.metric(lead.series.metric)} was not read this time"
    return ""


def _findings(
    before: Report, after: Report, less: Rate | None, *, is_known: bool
) -> Iterator[FindingChange]:
    now = {finding.fingerprint: finding for finding in after.findings}
    for finding in before.findings:
        other = now.pop(finding.fingerprint, None)
        rate = other.bytes_per_step if other is not None else 0.0
        change = _of_finding(finding, other, less) if is_known else Change.UNKNOWN
        yield _told(finding, change, finding.bytes_per_step, rate)
    for finding in now.values():
        yield _told(finding, Change.NEW, 0.0, finding.bytes_per_step)


def _of_finding(finding: Finding, other: Finding | None, less: Rate | None) -> Change:
    was = finding.bytes_per_step
    if other is None:
        # What is not found any more has to be missing from the growth, too.
        fell = less is not None and less.high >= _SAME * was
        return Change.GONE if fell else Change.UNKNOWN
    if other.bytes_per_step < _SAME * was:
        return Change.SMALLER
    return Change.LARGER if was < _SAME * other.bytes_per_step else Change.UNCHANGED


def _told(finding: Finding, change: Change, before: float, after: float) -> FindingChange:
    site = finding.keeper or finding.site
    return FindingChange(
        finding.fingerprint,
        finding.rule,
        finding.name,
        change,
        before,
        after,
        f"{site.file}:{site.line}" if site is not None else "",
    )
