"""Numbers and snapshots become one outcome: every row of the table in `decide.py`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from leakscope.analysis import analyse
from leakscope.model import HoldingKind, Outcome, Shape
from make import KIB, MIB, Maker, flat, line, recording

PROGRAM = """\
def fit(model, data):
    kept = []
    for x in data:
        kept.append(model(x))
"""


def scattered(directory: Path, per_step: float, last: int = 110) -> Maker:
    """A run whose live memory goes up and down by 40 MiB at every step, three times looked at."""
    chance = random.Random(3)

    def live(step: int) -> float:
        return 100 * MIB + per_step * step + 40 * MIB * chance.random()

    maker = recording(directory).steps(200, in_use=live, blocks=flat(1000), rss=flat(300 * MIB))
    return maker.looked(20, last, live).source(PROGRAM)


def growing(directory: Path, per_step: float = 30 * KIB) -> Maker:
    maker = recording(directory).steps(200, in_use=line(per_step), blocks=flat(1000))
    return maker.looked(20, 60, line(per_step)).source(PROGRAM)


@pytest.mark.parametrize(
    ("each", "outcome"),
    [(29 * KIB, Outcome.LEAK), (16 * KIB, Outcome.LEAK), (9 * KIB, Outcome.GROWING)],
)
def test_growth_is_a_leak_if_holders_keep_half_of_it(
    tmp_path: Path, each: int, outcome: Outcome
) -> None:
    report = analyse(growing(tmp_path).holds("kept", 1.0, each).done())
    assert report.verdict is outcome


def test_growth_without_a_holder_stays_growing(tmp_path: Path) -> None:
    assert analyse(growing(tmp_path).done()).verdict is Outcome.GROWING


def test_a_holder_with_a_size_limit_proves_nothing(tmp_path: Path) -> None:
    maker = growing(tmp_path).holds(
        "kept", 1.0, 29 * KIB, bound="it is a deque with at most 9 items"
    )
    assert analyse(maker.done()).verdict is Outcome.GROWING


def test_garbage_that_waits_for_the_collector_is_no_growth(tmp_path: Path) -> None:
    """Breaks when objects in reference cycles, which the next full collection frees, are a leak."""
    maker = growing(tmp_path).holds("kept", 1.0, 29 * KIB, kind=HoldingKind.GARBAGE)
    report = analyse(maker.done())
    assert report.verdict is Outcome.STEADY
    assert report.verdicts[0].shape is Shape.SAW_TOOTH
    assert "next full collection" in report.because
    assert report.findings == ()


def test_garbage_that_no_collection_frees_is_a_leak(tmp_path: Path) -> None:
    maker = growing(tmp_path).holds("kept", 1.0, 29 * KIB, kind=HoldingKind.CYCLE)
    assert analyse(maker.done()).verdict is Outcome.LEAK


@pytest.mark.parametrize(
    ("counts", "is_leak"),
    [
        (((20, 20), (40, 60), (80, 120), (160, 220)), True),
        (((20, 20), (40, 60), (80, 120), (160, 140)), False),
        (((20, 20), (40, 60), (80, 120)), False),
    ],
    ids=["slower by the clock", "came to rest", "not seen since"],
)
def test_what_a_holder_must_have_done(
    tmp_path: Path, counts: tuple[tuple[int, int], ...], is_leak: bool
) -> None:
    """Breaks when a holder that has filled up, or was last seen early, decides; or when one that
    grows by each round of a program whose rounds become longer does not."""
    last = counts[-1][0]
    maker = scattered(tmp_path, 50 * KIB, last).holds(
        "kept", 1.0, 50 * KIB, counts=counts, last=last
    )
    assert (analyse(maker.done()).verdict is Outcome.LEAK) == is_leak


COUNTS = ((20, 20), (65, 65), (110, 110))


def test_where_samples_are_too_noisy_a_holder_decides(tmp_path: Path) -> None:
    maker = scattered(tmp_path, 50 * KIB).holds("kept", 1.0, 50 * KIB, counts=COUNTS, last=110)
    report = analyse(maker.done())
    assert report.verdict is Outcome.LEAK
    assert "`kept` grew in every snapshot" in report.because
    assert report.verdicts[0].bytes_per_step.value == pytest.approx(50 * KIB, rel=0.05)


@pytest.mark.parametrize(
    "counts",
    [
        ((20, 20), (110, 110)),
        ((20, 20), (65, 20), (110, 110)),
        ((20, 20), (65, 100), (110, 110)),
    ],
    ids=["two snapshots", "not in every one", "it slows down"],
)
def test_a_holder_that_did_not_grow_evenly_in_three_snapshots_decides_nothing(
    tmp_path: Path, counts: tuple[tuple[int, int], ...]
) -> None:
    maker = scattered(tmp_path, 0.0).holds("kept", 1.0, 50 * KIB, counts=counts, last=110)
    assert analyse(maker.done()).verdict is not Outcome.LEAK


def test_a_small_history_decides_nothing(tmp_path: Path) -> None:
    """Breaks when a list of one number a step is called a leak because the samples are noisy."""
    maker = scattered(tmp_path, 0.0).holds("kept", 1.0, 32, counts=COUNTS, last=110)
    assert analyse(maker.done()).verdict is not Outcome.LEAK


def test_numbers_that_would_have_shown_it_are_not_overruled(tmp_path: Path) -> None:
    """A flat curve that would show 1 KiB a step is no leak of 50, whatever a snapshot says."""
    maker = recording(tmp_path).steps(200, in_use=flat(), blocks=flat(1000))
    maker.looked(20, 110, flat()).source(PROGRAM)
    maker.holds("kept", 1.0, 50 * KIB, counts=COUNTS, last=110)
    assert analyse(maker.done()).verdict is Outcome.STEADY
