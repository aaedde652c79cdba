"""A small run of the lab: the error rates have not moved."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import judge_lab
from leakscope.model import Outcome

SERIES = 20
SEED = 11
LEAST_FOUND = {"+ two levels": 0.6}
"""0.8 of the others. Half of its noise is as wide as the line that it is looked for on."""


@pytest.mark.parametrize("family", [*judge_lab.HARMLESS, "mixed", *judge_lab.BY_THE_CLOCK])
def test_harmless_families_are_not_growing(family: str) -> None:
    score = judge_lab.score(family, 120, SERIES, SEED, sigmas=0, is_exact=False, classic=False)
    assert score.flagged["leakscope"] == 0


@pytest.mark.parametrize("family", judge_lab.RIDES_ON)
def test_leaking_families_are_found(family: str) -> None:
    score = judge_lab.score(family, 120, SERIES, SEED, sigmas=30, is_exact=False, classic=False)
    assert score.flagged["leakscope"] >= LEAST_FOUND.get(family, 0.8) * SERIES
    assert score.covered >= 0.8 * SERIES


@pytest.mark.parametrize("family", ["linear", "staircase", "+ high-water", "late start"])
def test_leaks_in_exact_counters_are_all_found(family: str) -> None:
    score = judge_lab.score(family, 120, SERIES, SEED, sigmas=30, is_exact=True, classic=False)
    assert score.flagged["leakscope"] == SERIES
    assert score.outcomes == {Outcome.GROWING: SERIES}
