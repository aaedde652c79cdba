"""Every rule speaks about its own program of the zoo and is silent on the repaired one."""

from __future__ import annotations

import os
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import matrix
from leakscope.explain.catalogue import load_catalogue

_IS_WHOLE = os.environ.get("LEAKSCOPE_MATRIX") == "whole"
"""The repaired programs take as long again, two minutes on two cores: `make matrix` runs them too.
Without them the golden file has what they said when it was last measured."""

_TRIES = 4
"""On a machine with more to do than it can, a run of two seconds may get no look."""

PAIRS = {pair.name: pair for pair in matrix.pairs()}


@pytest.mark.torch
@pytest.mark.parametrize("name", PAIRS)
def test_a_rule_speaks_about_its_own_program_only(name: str) -> None:
    pair = PAIRS[name]
    for _ in range(_TRIES):
        leaky = matrix.run(pair, "leaky")
        if "No module named" in leaky.trouble:
            pytest.skip(leaky.trouble)
        assert not leaky.trouble
        if pair.rule in leaky.everything and set(leaky.first) <= {pair.rule, *pair.also}:
            break
    assert pair.rule in leaky.everything
    assert leaky.first
    assert set(leaky.first) <= {pair.rule, *pair.also}
    if _IS_WHOLE:
        fixed = matrix.run(pair, "fixed")
        assert not fixed.trouble
        assert pair.rule not in fixed.everything


def test_every_rule_has_one_program_of_its_own() -> None:
    # Those about GPUs are run by `make gpu-check`, on a machine that has one.
    elsewhere = [*matrix.pairs(matrix.ZOO_GPU), *matrix.pairs(matrix.ZOO_TF)]
    count = Counter(pair.rule for pair in (*PAIRS.values(), *elsewhere))
    assert count == Counter(page.code for page in load_catalogue().pages)


def test_the_matrix_as_printed_agrees_with_the_truth() -> None:
    rows = {row.name: row for row in matrix.rows_in(matrix.GOLDEN.read_text(encoding="utf-8"))}
    assert list(rows) == list(PAIRS)
    for name, row in rows.items():
        pair = PAIRS[name]
        said = set(row.leaky.split())
        assert said
        assert said <= {pair.rule, *pair.also}
        assert pair.rule not in row.fixed.split()


def test_the_table_is_read_as_it_is_written() -> None:
    rows = [matrix.Row("a-pair", "LS101", "-"), matrix.Row("another", "LS002 LS004", "LS004")]
    assert matrix.rows_in(matrix.table(rows)) == rows


def test_every_rule_that_the_zoo_names_exists() -> None:
    codes = {page.code for page in load_catalogue().pages}
    files = (*matrix.ZOO.glob("*/expected.toml"), *matrix.ZOO_TF.glob("*/expected.toml"))
    for file in files:
        truth = tomllib.loads(file.read_text())
        also = truth.get("also_rule", [])
        named = {truth.get("rule", "LS501"), *([also] if isinstance(also, str) else also)}
        assert named <= codes, file.parent.name
