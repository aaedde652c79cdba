"""Two reports in, what became of the growth out; and never "gone" without evidence."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from leakscope.model import Ending, Finding, Outcome, Rate, Report, Shape, Site
from leakscope.verify import Change, compare
from make_report import KIB, rate, steady, verdict

LOSSES = Finding(
    rule="LS101",
    name="kept-with-graph",
    blame="your-code",
    certainty=0.9,
    says="list `losses` keeps more",
    bytes_per_step=36.0 * KIB,
    share=0.9,
    keeper=Site("train.py", 34),
    fingerprint="01234567",
)


def growing(per_step: Rate, *findings: Finding, **changes: Any) -> Report:
    lead = verdict(outcome=Outcome.LEAK, shape=Shape.LINEAR, per_step=per_step)
    return steady(verdict=Outcome.LEAK, verdicts=(lead,), findings=findings, **changes)


def level(per_step: Rate, **changes: Any) -> Report:
    return steady(verdicts=(verdict(per_step=per_step),), **changes)


BEFORE = growing(rate(40.0 * KIB), LOSSES)


@pytest.mark.parametrize(
    ("after", "change", "of_finding", "code"),
    [
        (level(Rate(10.0, -200.0, 220.0)), Change.GONE, Change.GONE, 0),
        (level(Rate(2.0 * KIB, -20.0 * KIB, 24.0 * KIB)), Change.UNKNOWN, Change.GONE, 3),
        (growing(rate(40.5 * KIB), LOSSES), Change.UNCHANGED, Change.UNCHANGED, 1),
        (
            growing(rate(4.0 * KIB), msgspec.structs.replace(LOSSES, bytes_per_step=4.0 * KIB)),
            Change.SMALLER,
            Change.SMALLER,
            1,
        ),
        (growing(rate(4.0 * KIB)), Change.SMALLER, Change.GONE, 1),
        (growing(rate(0.4 * KIB)), Change.GONE, Change.GONE, 0),
        (
            growing(rate(0.4 * KIB), msgspec.structs.replace(LOSSES, bytes_per_step=0.4 * KIB)),
            Change.SMALLER,
            Change.SMALLER,
            1,
        ),
        (growing(rate(39.0 * KIB)), Change.UNKNOWN, Change.UNKNOWN, 3),
        (
            growing(rate(90.0 * KIB), msgspec.structs.replace(LOSSES, bytes_per_step=88.0 * KIB)),
            Change.LARGER,
            Change.LARGER,
            1,
        ),
        (level(rate(0.0), verdict=Outcome.UNKNOWN), Change.UNKNOWN, Change.GONE, 3),
        (level(rate(0.0), steps=100), Change.UNKNOWN, Change.UNKNOWN, 3),
        (level(rate(0.0), steps_from="time"), Change.UNKNOWN, Change.UNKNOWN, 3),
        (level(rate(0.0), ending=Ending(1, None, "")), Change.UNKNOWN, Change.UNKNOWN, 3),
        (level(rate(0.0), ending=Ending(None, 9, "")), Change.UNKNOWN, Change.UNKNOWN, 3),
        (steady(verdicts=()), Change.UNKNOWN, Change.UNKNOWN, 3),
    ],
)
def test_what_became_of_the_growth(
    after: Report, change: Change, of_finding: Change, code: int
) -> None:
    """Breaks when a run that failed, was short or noisy is called a proof, or growth is missed."""
    told = compare(BEFORE, after)
    assert (told.change, told.exit_code) == (change, code)
    assert told.findings[0].change is of_finding
    assert told.because


def test_fewer_ticks_of_the_clock_are_no_shorter_run() -> None:
    """Breaks when a program without steps cannot be verified because it became faster."""
    before = growing(rate(40.0 * KIB), LOSSES, steps_from="time")
    after = level(Rate(10.0, -200.0, 220.0), steps_from="time", steps=150)
    assert compare(before, after).change is Change.GONE


def test_difference_has_an_interval_and_new_findings_are_named() -> None:
    """Breaks when the interval of the difference is narrower than those of the two runs."""
    other = msgspec.structs.replace(LOSSES, fingerprint="89abcdef", bytes_per_step=KIB)
    told = compare(BEFORE, growing(rate(4.0 * KIB), other))
    less = told.less_bytes_per_step
    assert less is not None
    assert less.low < less.value < less.high
    assert less.value == pytest.approx(36.0 * KIB)
    assert less.value - less.low > 40.0 * KIB * 0.06
    assert [(one.change, one.fingerprint) for one in told.findings] == [
        (Change.GONE, "01234567"),
        (Change.NEW, "89abcdef"),
    ]
    assert told.findings[0].where == "train.py:34"
