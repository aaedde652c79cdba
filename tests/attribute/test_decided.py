"""Runs that the counters cannot decide: a holder that grows at every look does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from leakscope.analysis import analyse
from leakscope.attribute.guard import is_ever_emptied
from leakscope.model import Link, Outcome
from make import KIB, MIB, Maker, Shape, line, recording, rising_until

KEEPS = """\
def fit(model, data):
    kept = []
    for x in data:
        kept.append(model(x))
"""
EMPTIES = """\
def fit(model, data):
    kept = []
    for x in data:
        kept.append(model(x))
        if x is None:
            kept.clear()
"""
LOOKS = ((40, 40), (80, 80), (84, 84), (160, 160), (164, 164))


def scattered(shape: Shape, size: float = 8 * MIB) -> Shape:
    """Steps that have up to so much in flight when they are read."""
    chance = random.Random(7)
    return lambda step: shape(step) + chance.random() * size


def undecided(directory: Path, shape: Shape, program: str = KEEPS) -> Maker:
    maker = recording(directory).steps(200, in_use=scattered(shape), blocks=lambda _: 1000)
    return maker.looked(40, 160, line(20 * KIB)).source(program)


def test_the_counters_alone_do_not_see_it(tmp_path: Path) -> None:
    report = analyse(undecided(tmp_path, line(20 * KIB)).done())
    assert report.verdict in (Outcome.STEADY, Outcome.UNKNOWN)


def test_a_holder_that_grows_at_every_look_decides(tmp_path: Path) -> None:
    maker = undecided(tmp_path, line(20 * KIB)).holds("kept", 1.0, 20 * KIB, counts=LOOKS)
    report = analyse(maker.done())
    assert report.verdict is Outcome.LEAK
    (finding,) = report.findings
    assert finding.bytes_per_step == pytest.approx(20 * KIB)
    assert "at every look" in report.because


def test_not_where_it_is_emptied_somewhere(tmp_path: Path) -> None:
    maker = undecided(tmp_path, line(20 * KIB), EMPTIES).holds("kept", 1.0, 20 * KIB, counts=LOOKS)
    assert analyse(maker.done()).verdict in (Outcome.STEADY, Outcome.UNKNOWN)


def test_not_where_it_slows_down(tmp_path: Path) -> None:
    slower = ((40, 40), (80, 80), (84, 82), (160, 95), (164, 96))
    maker = undecided(tmp_path, line(20 * KIB)).holds("kept", 1.0, 20 * KIB, counts=slower)
    assert analyse(maker.done()).verdict in (Outcome.STEADY, Outcome.UNKNOWN)


def test_not_after_two_counts_only(tmp_path: Path) -> None:
    maker = undecided(tmp_path, line(20 * KIB)).holds("kept", 1.0, 20 * KIB, counts=LOOKS[:3])
    assert analyse(maker.done()).verdict in (Outcome.STEADY, Outcome.UNKNOWN)


def test_not_where_the_counters_fell_again_afterwards(tmp_path: Path) -> None:
    """The looks ended at step 64; what was kept by then was let go of."""
    early = ((10, 10), (20, 20), (24, 24), (40, 40), (44, 44))
    shape = rising_until(50, 4 * MIB)
    maker = undecided(tmp_path, lambda step: shape(step) if step < 60 else shape(0))
    maker = maker.holds("kept", 1.0, 4 * MIB, counts=early)
    assert analyse(maker.done()).verdict is not Outcome.LEAK


@pytest.mark.parametrize(
    ("text", "is_emptied"),
    [
        ("kept = []\ndef f(x):\n    kept.append(x)\n", False),
        ("kept = []\ndef f(x):\n    kept.append(x)\n    kept.pop()\n", True),
        ("kept = []\ndef f(x):\n    kept.append(x)\n    del kept[0]\n", True),
        ("kept = []\ndef f(x):\n    kept[:] = kept[-9:]\n    kept.append(x)\n", True),
        ("kept = []\ndef flush():\n    global kept\n    kept = []\n", True),
        ("kept = []\ndef flush():\n    global kept\n    out, kept = kept, []\n", True),
        ("kept = []\nfor x in range(9):\n    kept = []\n    kept.append(x)\n", True),
    ],
)
def test_what_empties_a_list(text: str, is_emptied: bool) -> None:
    link = Link(".kept", "list", "global", "kept", "/there/train.py", "", 0)
    assert is_ever_emptied({"/there/train.py": text}, link) is is_emptied


@pytest.mark.parametrize(
    ("method", "is_emptied"), [("__init__", False), ("reset", True), ("on_epoch_end", True)]
)
def test_an_attribute_begins_anew_in_another_method(method: str, is_emptied: bool) -> None:
    text = (
        "class Log:\n    def __init__(self):\n        self.rows = []\n"
        f"    def {method}(self):\n        self.rows = []\n"
        "    def add(self, x):\n        self.rows.append(x)\n"
    )
    link = Link(".rows", "list", "attribute", "rows", "/there/train.py", "Log", 0)
    assert is_ever_emptied({"/there/train.py": text}, link) is is_emptied


def test_an_attribute_that_is_swapped_for_an_empty_one_is_emptied() -> None:
    text = (
        "class Log:\n    def __init__(self):\n        self.rows = []\n"
        "    def flush(self):\n        rows, self.rows = self.rows, []\n        return rows\n"
    )
    link = Link(".rows", "list", "attribute", "rows", "/there/train.py", "Log", 0)
    assert is_ever_emptied({"/there/train.py": text}, link)


def test_what_has_no_source_may_be_emptied() -> None:
    link = Link(".buffer", "list", "attribute", "buffer", "/lib/handlers.py", "MemoryHandler", 0)
    assert is_ever_emptied({"/there/train.py": KEEPS}, link)


@pytest.mark.parametrize(("each", "outcome"), [(1500, Outcome.LEAK), (400, Outcome.UNKNOWN)])
def test_blocks_that_a_holder_takes_are_no_garbage(
    tmp_path: Path, each: int, outcome: Outcome
) -> None:
    """One look is enough where it agrees with Python's own count, and only there."""
    maker = recording(tmp_path).steps(
        500, in_use=lambda _: 100 * MIB, blocks=lambda step: 1e6 + 22 * step
    )
    maker.source(KEEPS).looked(323, 488, lambda _: 100 * MIB)
    maker.holds("kept", 1.0, each, counts=((323, 323), (488, 488), (492, 492)))
    report = analyse(maker.done())
    assert report.verdict is outcome
    if outcome is Outcome.LEAK:
        assert "so they are not garbage" in report.because


def test_blocks_are_not_said_to_agree_with_a_holder_that_outgrows_them(tmp_path: Path) -> None:
    """Decided by five counts, at 1.6 times what the blocks rise by."""
    maker = recording(tmp_path).steps(
        500, in_use=lambda _: 100 * MIB, blocks=lambda step: 1e6 + 22 * step
    )
    maker.source(KEEPS).looked(100, 200, lambda _: 100 * MIB)
    counts = tuple((step, step) for step in (100, 200, 204, 300, 304))
    maker.holds("kept", 1.0, 2500, counts=counts, part="python")
    report = analyse(maker.done())
    assert report.verdict is Outcome.LEAK
    assert "scatter too much" in report.because


@pytest.mark.parametrize(("each", "outcome"), [(80, Outcome.LEAK), (30, Outcome.GROWING)])
def test_one_look_decides_where_memory_in_use_rises_as_fast(
    tmp_path: Path, each: int, outcome: Outcome
) -> None:
    """Resident memory grows by more, as freed memory lies between; that proves no holder."""
    maker = recording(tmp_path).steps(
        300,
        in_use=scattered(line(80 * KIB, 100 * MIB)),
        blocks=lambda _: 1000,
        rss=line(200 * KIB, 400 * MIB),
    )
    maker.looked(40, 80, line(80 * KIB, 100 * MIB)).source(KEEPS)
    maker.holds("kept", 1.0, each * KIB, counts=((40, 40), (80, 80), (84, 84)))
    report = analyse(maker.done())
    assert report.verdict is outcome
    rates = {one.series.metric: one.bytes_per_step.value for one in report.verdicts}
    assert rates["process.rss_bytes"] == pytest.approx(200 * KIB, rel=0.05)
    if outcome is Outcome.LEAK:
        assert "rises as fast as that" in report.because
        assert report.findings[0].bytes_per_step == pytest.approx(each * KIB)


@pytest.mark.parametrize("falls", [False, True])
def test_a_short_run_with_few_rows_is_decided_by_what_it_has(tmp_path: Path, falls: bool) -> None:
    """Something was let go of once, at step 60, and one look found the holder: three rows since
    the first look and three at the end say whether it was let go of again."""

    def shape(step: int) -> float:
        freed = 5 * MIB if falls and step > 175 else 0.9 * MIB
        return 150 * MIB + 30 * KIB * step - freed * (step > 60)

    maker = recording(tmp_path).steps(200, in_use=shape, every=13).source(KEEPS)
    maker.looked(100, 156, line(30 * KIB))
    counts = ((100, 100), (156, 156), (160, 160))
    report = analyse(maker.holds("kept", 1.0, 30 * KIB, counts=counts).done())
    assert (report.verdict is Outcome.LEAK) is not falls
