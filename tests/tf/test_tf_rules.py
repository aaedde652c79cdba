"""Every rule about TensorFlow, Keras and JAX speaks about its own program of zoo/tf/."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import matrix

_IS_WHOLE = os.environ.get("LEAKSCOPE_MATRIX") == "whole"
_TRIES = 3
"""On a machine with more to do than it can, a run of a few seconds may get no look."""

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
    for _ in range(_TRIES):
        leaky = matrix.run(pair, "leaky")
        assert not leaky.trouble
        # Of a leak, what is said first; notes about the frameworks' pools may stand below it.
        spoken = {*(leaky.rules if pair.rule in _NO_LEAKS else leaky.rules[:1])}
        if pair.rule in spoken and spoken <= pair.expected:
            break
    assert pair.rule in leaky.rules
    assert spoken <= pair.expected
    if _IS_WHOLE:
        fixed = matrix.run(pair, "fixed")
        assert not fixed.trouble
        assert pair.rule not in fixed.rules
