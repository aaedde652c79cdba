"""Growth is measured over the stretch in which holders were counted, without what looks leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from leakscope.attribute.measured import slope
from leakscope.attribute.suspects import explain_growth
from leakscope.record.reader import Columns
from make import KIB, MIB, flat, recording

MAIN = "1-7"


def test_what_a_look_leaves_is_no_growth() -> None:
    steps = list(range(100, 200, 4))
    columns: Columns = {
        "step": [*steps],
        "in_use_bytes": [step * KIB + (step > 148) * MIB for step in steps],
    }
    straight = slope(columns, "in_use_bytes", 0, 1000)
    assert straight is not None
    assert straight > 5 * KIB
    assert slope(columns, "in_use_bytes", 0, 1000, looks=[148]) == KIB


def test_too_few_rows_between_looks_are_not_joined() -> None:
    steps = list(range(10))
    columns: Columns = {"step": [*steps], "in_use_bytes": [step * KIB for step in steps]}
    assert slope(columns, "in_use_bytes", 0, 1000, looks=steps) == KIB


def test_what_comes_after_the_looks_does_not_make_the_holders_part_smaller(tmp_path: Path) -> None:
    """Items that become larger: later ones were not weighed."""

    def grows(step: int) -> float:
        return 100 * MIB + 16 * step * step

    maker = recording(tmp_path).process().steps(120, in_use=grows, blocks=flat(1))
    maker.looked(20, 56, grows).mark("look done", 60)
    maker.holds("kept", 1.0, 32 * 40)
    (suspect,) = explain_growth(maker.done(), MAIN).suspects
    assert suspect.share > 0.9


def test_by_the_clock_holders_and_counters_are_compared_between_the_same_looks(
    tmp_path: Path,
) -> None:
    """From tick 60 to 200 looks take most of the time: a tick there has a tenth of the work."""

    def done(tick: int) -> float:
        return min(tick, 60) + max(min(tick, 200) - 60, 0) / 10 + max(tick - 200, 0)

    def grows(tick: int) -> float:
        return 100 * MIB + 4 * KIB * done(tick)

    counted = (20, 60, 64, 130, 134, 200, 204)
    maker = recording(tmp_path).process()
    maker.steps(900, source="tick", in_use=grows, blocks=flat(1))
    for first, last in ((20, 60), (130, 200)):
        maker.looked(first, last, grows, source="tick")
    counts = tuple((tick, int(done(tick))) for tick in counted)
    maker.holds("kept", 1.0, 4 * KIB, counts=counts)
    (suspect,) = explain_growth(maker.done(), MAIN).suspects
    assert suspect.share == pytest.approx(1.0, abs=0.05)


def test_an_array_by_the_clock_is_compared_over_the_time_of_its_looks(tmp_path: Path) -> None:
    """While the window is open the program stands nearly still, and the clock goes on: an array
    that is all of the growth had nine tenths of it."""

    def done(tick: int) -> float:
        return min(tick, 60) + max(min(tick, 80) - 60, 0) / 10 + max(tick - 80, 0)

    def grows(tick: int) -> float:
        return 100 * MIB + 4 * KIB * done(tick)

    maker = recording(tmp_path).process().steps(300, source="tick", in_use=grows, blocks=flat(1))
    maker.looked(20, 60, grows, source="tick")
    rows = ((20, int(4 * KIB * done(20))), (80, int(4 * KIB * done(80))))
    maker.holds("bank", 1.0, 1.0, kind="array", counts=rows)
    maker.source("def fit():\n    bank = []\n    for x in data:\n        bank = cat((bank, x))\n")
    (suspect,) = explain_growth(maker.done(), MAIN).suspects
    assert suspect.share == pytest.approx(1.0, abs=0.01)
