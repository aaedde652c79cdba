"""Zombies are told of where they pile up, not where a program ends its children."""

from __future__ import annotations

import pathlib

import pytest

from leakscope.judge.series import RunSeries
from leakscope.summarise.children import notes_on_children
from make import Shape, flat, recording


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        (lambda step: step / 4, "22 processes have ended"),
        # A busy machine: what ends them all takes the last fifth of the run.
        (lambda step: 23 if step >= 80 else 0, None),
        (lambda step: 12 if step < 60 else 0, None),
        (lambda step: 2, None),
    ],
    ids=["pile-up", "at-the-end", "waited-for-later", "two"],
)
def test_zombies(counts: Shape, told: str | None, tmp_path: pathlib.Path) -> None:
    maker = recording(tmp_path).process().steps(100, in_use=flat())
    maker.machine(range(100), zombies_count=counts)
    notes = notes_on_children(RunSeries(maker.done()), ())
    assert [note[: len(told or "")] for note in notes] == ([told] if told else [])
