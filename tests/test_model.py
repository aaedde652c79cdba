"""The nouns keep their promises: frozen, and outside the collector's view."""

from __future__ import annotations

import gc

import msgspec
import pytest

from leakscope import model

NOUNS = [
    noun
    for noun in vars(model).values()
    if isinstance(noun, type) and issubclass(noun, msgspec.Struct)
]


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: str(noun.__name__))
def test_every_noun_is_frozen_and_untracked(noun: type[msgspec.Struct]) -> None:
    assert noun.__struct_config__.frozen
    assert not noun.__struct_config__.gc


def test_records_do_not_show_up_in_what_they_count() -> None:
    """A thousand samples must not be a thousand objects in the program's heap."""
    gc.collect()
    before = len(gc.get_objects())
    kept = tuple(
        model.Sample(model.Moment(i, i, i), "1-1", "process", {"rss_bytes": i}) for i in range(1000)
    )
    assert len(gc.get_objects()) - before < 20
    assert len(kept) == 1000


def test_the_schema_version_is_in_every_report() -> None:
    assert model.Report.__struct_fields__[0] == "schema"
