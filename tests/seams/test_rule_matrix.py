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
"""Those that are no rule's own take twice as long again: `make matrix` runs them too. Without them
the golden file has what they said when it was last measured."""

PAIRS = {pair.name: pair for pair in matrix.pairs()}
OTHERS = {entry.name: entry for entry in matrix.entries() if entry.rule is None}


def _run(entry: matrix.Entry, variant: str) -> matrix.Said:
    said = matrix.run(entry, variant)
    if "No module named" in said.trouble:
        pytest.skip(said.trouble)
    assert not said.trouble
    return said


@pytest.mark.torch
@pytest.mark.parametrize("name", PAIRS)
def test_a_rule_speaks_about_its_own_program_only(name: str) -> None:
    pair = PAIRS[name]
    leaky = _run(pair, "leaky")
    if leaky.is_silent:  # it says that a longer run is needed: on a busy machine that may be
        leaky = _run(pair, "leaky")
    assert pair.rule in leaky.rules
    assert {*leaky.rules} <= pair.expected


@pytest.mark.torch
@pytest.mark.parametrize("name", PAIRS)
def test_a_repaired_program_is_no_alarm(name: str) -> None:
    fixed = _run(PAIRS[name], "fixed")
    assert not fixed.is_alarm, fixed


@pytest.mark.torch
@pytest.mark.skipif(not _IS_WHOLE, reason="takes a quarter of an hour: make matrix")
@pytest.mark.parametrize("name", OTHERS)
def test_every_other_rule_is_silent(name: str) -> None:
    entry = OTHERS[name]
    assert {*_run(entry, "leaky").rules} <= entry.expected
    assert not _run(entry, "fixed").is_alarm


def test_every_rule_has_one_program_of_its_own() -> None:
    count = Counter(pair.rule for zoo in matrix.ZOOS for pair in matrix.pairs(zoo))
    assert count == Counter(page.code for page in load_catalogue().pages)


def test_the_matrix_as_printed_agrees_with_the_truth() -> None:
    rows = {row.name: row for row in matrix.rows_in(matrix.GOLDEN.read_text(encoding="utf-8"))}
    entries = {entry.label: entry for zoo in matrix.ZOOS for entry in matrix.entries(zoo)}
    assert list(rows) == list(entries)
    for name, row in rows.items():
        entry = entries[name]
        assert {*row.expected.split()} - {"-"} == entry.expected
        assert not row.stray, name
        assert entry.rule is None or entry.rule in row.leaky.split()


def test_the_table_is_read_as_it_is_written() -> None:
    rows = [
        matrix.Row("a-pair", "LS101", "LS101", "-"),
        matrix.Row("another", "LS002", "LS002 LS004", "LS004"),
    ]
    assert matrix.rows_in(matrix.table(rows)) == rows
    assert [row.stray for row in rows] == ["", "LS004"]


def test_every_rule_that_the_zoo_names_exists() -> None:
    codes = {page.code for page in load_catalogue().pages}
    for file in (file for zoo in matrix.ZOOS for file in zoo.glob("*/expected.toml")):
        truth = tomllib.loads(file.read_text())
        also = truth.get("pattern", [])
        named = {truth.get("rule", "LS501"), *([also] if isinstance(also, str) else also)}
        assert named <= codes, file.parent.name
