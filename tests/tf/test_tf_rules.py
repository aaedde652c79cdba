"""Every rule about TensorFlow, Keras and JAX speaks about its own program of zoo/tf/."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import matrix

_IS_WHOLE = os.environ.get("LEAKSCOPE_MATRIX") == "whole"
PAIRS = {pair.name: pair for pair in matrix.pairs(matrix.ZOO_TF)}
_NO_LEAKS = {pair.rule for pair in PAIRS.values() if (pair.rule or "").startswith("LS0")}


_ALWAYS = (
    "a-dataset-per-patient",
    "noise-annealed-in-python",
    "predict-in-a-loop",
    "scan-over-a-closure",
)
"""One of each: a callback, a graph, no leak, an executable. `make matrix-tf` runs them all."""


@pytest.mark.parametrize("name", PAIRS if _IS_WHOLE else _ALWAYS)
def test_a_rule_speaks_about_its_own_program_only(name: str) -> None:
    pair = PAIRS[name]
    leaky = matrix.run(pair, "leaky")
    if leaky.is_silent:  # it says that a longer run is needed: on a busy machine that may be
        leaky = matrix.run(pair, "leaky")
    assert not leaky.trouble
    # Of a leak, what is said first; notes about the frameworks' pools may stand below it.
    spoken = {*(leaky.rules if pair.rule in _NO_LEAKS else leaky.rules[:1])}
    assert pair.rule in leaky.rules
    assert spoken <= pair.expected


@pytest.mark.parametrize("name", PAIRS if _IS_WHOLE else _ALWAYS)
def test_a_repaired_program_is_no_alarm(name: str) -> None:
    fixed = matrix.run(PAIRS[name], "fixed")
    assert not fixed.trouble
    assert PAIRS[name].rule not in fixed.rules
    assert fixed.verdict in ("steady", "unknown")
