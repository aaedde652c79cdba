"""What gives memory back at the end of a run."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from leakscope.observe.remedies import try_remedies


class Ring:
    def __init__(self) -> None:
        self.me = self
        self.payload = [object() for _ in range(100)]


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def blocks() -> dict[str, int]:
    return {"blocks_count": sys.getallocatedblocks()}


@pytest.mark.usefixtures("without_collector")
def test_a_collection_gives_back_what_lies_in_cycles() -> None:
    for _ in range(50):
        Ring()
    (remedy,) = try_remedies(blocks, is_puzzled=True, is_much_held=False)
    assert remedy.name == "collection"
    assert remedy.before["blocks_count"] - remedy.after["blocks_count"] >= 50 * 100


@pytest.mark.usefixtures("without_collector")
def test_what_was_frozen_is_thawed_first() -> None:
    for _ in range(50):
        Ring()
    gc.freeze()
    (remedy,) = try_remedies(blocks, is_puzzled=True, is_much_held=False)
    assert remedy.name == "thaw"
    assert remedy.before["blocks_count"] - remedy.after["blocks_count"] >= 50 * 100


def test_nothing_is_collected_where_nothing_is_to_be_found_out() -> None:
    names = [one.name for one in try_remedies(blocks, is_puzzled=False, is_much_held=True)]
    assert names == ["trim"]
    assert try_remedies(blocks, is_puzzled=False, is_much_held=False) == []
