"""Lengths are read again by name, from the root down, and nothing is kept in between."""

from __future__ import annotations

import gc
import weakref
from collections import deque
from typing import Any

import pytest

from leakscope.model import Holding, Link, Moment
from leakscope.observe.holders import Path, find_path
from leakscope.observe.recount import Recount, words_of


class Thing:
    pass


class Trainer:
    seen: list[Any] = []  # noqa: RUF012 - that it is shared is the point

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {"loss": [Thing()]}


class Slotted:
    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: deque[Any] = deque([Thing()])


kept: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Any:
    yield
    kept.clear()
    Trainer.seen.clear()


def follow(path: Path, *, at: int = 10) -> Recount:
    """As after a look at step `at` that found the container of what this leads to growing."""
    recount = Recount()
    recount.follow([holding(path.links[:-1], at)], at)
    return recount


def holding(path: tuple[Link, ...], at: int, kind: str = "container") -> Holding:
    return Holding(Moment(0, 0), "1-1", kind, path, len(path) - 1, "Thing", ((1, 1), (at, 2)))


def lengths(recount: Recount, step: int = 1000) -> list[int]:
    return [one.length for one in recount.count(step)]


def test_a_global() -> None:
    kept.append(Thing())
    recount = follow(find_path(kept[0]))
    kept.append(1)
    assert lengths(recount) == [2]


def test_an_attribute_of_a_class() -> None:
    Trainer.seen.append(Thing())
    recount = follow(find_path(Trainer.seen[0]))
    Trainer.seen += [1, 2]
    assert lengths(recount) == [3]


def test_a_local_and_a_key() -> None:
    assert _in_a_function() == ([2], [4])


def _in_a_function() -> tuple[list[int], list[int]]:
    trainer, slotted = Trainer(), Slotted()
    by_key, by_slot = (
        follow(find_path(trainer.history["loss"][0])),
        follow(find_path(slotted.items[0])),
    )
    trainer.history["loss"].append(1)
    slotted.items.extend((1, 2, 3))
    return lengths(by_key), lengths(by_slot)


def test_a_list_that_is_made_anew_is_shorter() -> None:
    assert _made_anew() == [1]


def _made_anew() -> list[int]:
    outputs = [Thing(), Thing(), Thing()]
    recount = follow(find_path(outputs[0]))
    outputs = [Thing()]
    return lengths(recount)


def test_a_function_that_has_returned_is_not_found() -> None:
    assert lengths(_returned()) == []


def _returned() -> Recount:
    outputs = [Thing()]
    return follow(find_path(outputs[0]))


def test_what_has_no_name_is_not_followed() -> None:
    kept.append([Thing()])
    assert not follow(find_path(kept[0][0])).is_due(10**9)
    recount = Recount()
    recount.follow([holding(find_path(kept[0]).links[:-1], 10, kind="graph")], 10)
    assert not recount.is_due(10**9)


def test_counts_come_ever_more_rarely() -> None:
    kept.append(Thing())
    recount = follow(find_path(kept[0]), at=100)
    due = []
    for step in range(100, 1_000_000):
        if recount.is_due(step):
            recount.count(step)
            due.append(step)
    assert 50 < len(due) < 120
    assert due[-1] > 0.9 * 1_000_000


def test_nothing_is_kept_alive() -> None:
    gone = _dropped()
    gc.collect()
    assert gone() is None


def _dropped() -> weakref.ref[Any]:
    things = [Thing()]
    recount = follow(find_path(things[0]))
    recount.count(1000)
    return weakref.ref(things[0])


def test_the_words_are_those_of_the_report() -> None:
    kept.append(Thing())
    assert words_of(find_path(kept[0]).links[:-1]) == f"module {__name__} > .kept"


def test_the_newest_items_are_weighed_now_and_then() -> None:
    """Breaks when a list of ever larger copies is told with the weight of its first ones."""
    kept.extend(bytearray(1000) for _ in range(8))
    recount = follow(find_path(kept[0]), at=100)
    weights = []
    for step in range(100, 1000):
        kept.append(bytearray(10 * step))
        if recount.is_due(step):
            weights += [(step, one.bytes_each) for one in recount.count(step) if one.bytes_each]
    assert 5 < len(weights) < 20
    for step, each in weights:
        assert each == pytest.approx(10 * step, rel=0.1)


def test_an_empty_list_has_no_weight() -> None:
    kept.append(Thing())
    recount = follow(find_path(kept[0]))
    kept.clear()
    assert recount.count(1000) == [(words_of(find_path(kept).links), 0, 0)]
