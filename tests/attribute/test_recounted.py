"""What became of a holder after the last look decides what counters could not."""

from __future__ import annotations

from pathlib import Path

import pytest

from leakscope.analysis import analyse
from leakscope.model import Outcome
from make import KIB, MIB, Maker, flat, line, recording, wobble

PROGRAM = """\
def fit(model, data):
    kept = []
    for x in data:
        kept.append(model(x))
"""


def scattered(directory: Path, *later: tuple[int, int]) -> Maker:
    """4 KiB a step under steps that take megabytes, looked at once; and counted later on."""
    shape = wobble(line(4 * KIB), 6 * MIB)
    maker = recording(directory).steps(300, in_use=shape, blocks=flat(1000))
    maker.looked(40, 64, shape).source(PROGRAM)
    maker.holds("kept", 0, 4 * KIB, counts=((40, 40), (60, 60), (64, 64)))
    for step, length in later:
        maker.recounted("local kept in fit()", step, length)
    return maker


def test_without_later_counts_the_counters_do_not_tell(tmp_path: Path) -> None:
    assert analyse(scattered(tmp_path).done()).verdict is not Outcome.LEAK


def test_a_list_that_is_longer_to_the_end_is_a_leak(tmp_path: Path) -> None:
    later = [(step, step) for step in (80, 110, 150, 200, 270)]
    report = analyse(scattered(tmp_path, *later).done())
    assert report.verdict is Outcome.LEAK
    assert report.findings[0].bytes_per_step == pytest.approx(4 * KIB, rel=0.1)


@pytest.mark.parametrize("last", [3, 64], ids=["emptied", "no longer growing"])
def test_one_that_is_not_is_none(tmp_path: Path, last: int) -> None:
    later = [(80, 64), (110, 64), (150, 64), (200, 64), (270, last)]
    assert analyse(scattered(tmp_path, *later).done()).verdict is not Outcome.LEAK


def test_growth_that_a_holder_does_not_share_is_not_its(tmp_path: Path) -> None:
    """The counters grow, the list was made anew: it is told with the reason, and is no evidence."""
    shape = line(30 * KIB)
    maker = recording(tmp_path).steps(300, in_use=shape, blocks=flat(1000)).source(PROGRAM)
    maker.looked(40, 64, shape)
    maker.holds("kept", 0, 29 * KIB, counts=((40, 40), (60, 60), (64, 64)))
    report = analyse(maker.recounted("local kept in fit()", 200, 3).done())
    assert report.verdict is Outcome.GROWING
    assert "64 entries at step 64 and 3 at 200" in report.findings[0].says


def test_a_few_that_are_taken_out_do_not_stop_it(tmp_path: Path) -> None:
    """Breaks when a table that drops a handful now and then, and grows all the same, is bounded."""
    shape = line(30 * KIB)
    maker = recording(tmp_path).steps(300, in_use=shape, blocks=flat(1000)).source(PROGRAM)
    maker.looked(40, 64, shape)
    maker.holds("kept", 0, 29 * KIB, counts=((40, 40), (60, 60), (64, 64)))
    for step, length in ((100, 100), (140, 96), (200, 190), (270, 250)):
        maker.recounted("local kept in fit()", step, length)
    assert analyse(maker.done()).verdict is Outcome.LEAK


@pytest.mark.parametrize(("later", "verdict"), [(270, Outcome.LEAK), (None, Outcome.GROWING)])
def test_what_goes_on_is_a_part_of_the_growth_that_goes_on(
    tmp_path: Path, later: int | None, verdict: Outcome
) -> None:
    """The program warms up around its looks, by as much again as it grows by afterwards. A list
    that was counted to the end is told with its part of the latter."""

    def shape(step: int) -> float:
        return 100 * MIB + 10 * KIB * step + 10 * KIB * min(step, 130)

    maker = recording(tmp_path).steps(300, in_use=shape, blocks=flat(1000)).source(PROGRAM)
    maker.looked(40, 64, shape)
    maker.holds("kept", 0, 7 * KIB, counts=((40, 40), (60, 60), (64, 64)))
    if later is not None:
        maker.recounted("local kept in fit()", later, later)
    report = analyse(maker.done())
    assert report.verdict is verdict
    assert report.findings[0].share == pytest.approx(0.7 if later else 0.35, rel=0.1)


def test_what_is_kept_now_and_then_is_told_as_counted_to_the_end(tmp_path: Path) -> None:
    """One in four steps; between two looks that are 26 steps apart, 5 more instead of 6.5."""

    def shape(step: int) -> float:
        return 100 * MIB + 80 * KIB * (step // 4)

    maker = recording(tmp_path).steps(300, in_use=shape, blocks=flat(1000)).source(PROGRAM)
    maker.looked(26, 52, shape)
    maker.holds("kept", 0, 80 * KIB, counts=((26, 7), (48, 11), (52, 12)))
    for step in (100, 200, 280):
        maker.recounted("local kept in fit()", step, step // 4)
    (finding,) = analyse(maker.done()).findings
    assert finding.count_per_step == pytest.approx(0.25, rel=0.05)
    assert finding.share > 0.95


@pytest.mark.parametrize(("last", "is_told"), [(4, False), (12, True)])
def test_what_was_empty_and_stays_as_long_as_it_is_was_another(
    tmp_path: Path, last: int, is_told: bool
) -> None:
    """Breaks when a table at the address of another is told as what grows."""
    shape = line(30 * KIB)
    maker = recording(tmp_path).steps(300, in_use=shape, blocks=flat(1000)).source(PROGRAM)
    maker.looked(40, 64, shape)
    maker.holds("kept", 0, 180 * KIB, counts=((40, 0), (60, 4), (64, 4)))
    report = analyse(maker.recounted("local kept in fit()", 270, last).done())
    assert bool(report.findings) is is_told


@pytest.mark.parametrize(("is_weighed", "share"), [(True, 1.0), (False, 0.4)])
def test_items_that_become_heavier_are_told_as_heavy_as_they_become(
    tmp_path: Path, is_weighed: bool, share: float
) -> None:
    """Each is 32 bytes heavier than the one before it; in the look one weighs 2 KiB, beside a
    program that still warms up."""

    def shape(step: int) -> float:
        return 100 * MIB + 16 * step * step + 2 * KIB * min(step, 130)

    maker = recording(tmp_path).steps(300, in_use=shape, blocks=flat(1000)).source(PROGRAM)
    maker.looked(40, 64, shape)
    maker.holds("kept", 0, 64 * 32, counts=((40, 40), (60, 60), (64, 64)))
    for step in (80, 110, 150, 200, 270):
        each = 32 * step if is_weighed else None
        maker.recounted("local kept in fit()", step, step, each=each)
    (finding,) = analyse(maker.done()).findings
    assert finding.share == pytest.approx(share, abs=0.1)
    assert ("8.4 KiB each by step 270" in finding.says) is is_weighed


def test_items_that_seem_lighter_later_are_not(tmp_path: Path) -> None:
    """The newest are in use by the step that is under way."""
    shape = line(30 * KIB)
    maker = recording(tmp_path).steps(300, in_use=shape, blocks=flat(1000)).source(PROGRAM)
    maker.looked(40, 64, shape)
    maker.holds("kept", 0, 29 * KIB, counts=((40, 40), (60, 60), (64, 64)))
    maker.recounted("local kept in fit()", 270, 270, each=100)
    (finding,) = analyse(maker.done()).findings
    assert finding.share > 0.9
    assert "by step" not in finding.says
