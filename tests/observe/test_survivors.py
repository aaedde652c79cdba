"""Survivors of a window, and garbage found without collecting it."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from leakscope.observe.survivors import Survivors, garbage_among, kinds_of


class Node:
    def __init__(self) -> None:
        self.me: Any = None


@pytest.fixture(autouse=True)
def no_collector() -> Any:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_only_what_was_born_in_the_window_survives() -> None:
    old = [Node() for _ in range(50)]
    window = Survivors()
    window.begin(step=10, mark_after=2)
    young = [Node() for _ in range(7)]
    Node()
    window.mark(step=12)
    later = Node()
    born = window.end()
    assert dict(kinds_of(born))[Node] == 7
    assert not any(one is later for one in born)
    assert window.steps == 2
    assert gc.get_freeze_count() == 0
    assert len(old) + len(young) == 57


def test_a_program_that_freezes_is_left_alone() -> None:
    many = [[] for _ in range(20_000)]  # type: ignore[var-annotated]
    gc.freeze()
    try:
        window = Survivors()
        window.begin(step=0)
        assert "gc.freeze" in window.why_not
        assert window.end() == []
        assert gc.get_freeze_count() > len(many)
    finally:
        gc.unfreeze()


def test_a_program_that_freezes_in_the_window_stays_frozen() -> None:
    """Breaks when thawing our own window thaws what the program wanted frozen."""
    window = Survivors()
    window.begin(step=0)
    mine: list[Any] = [[] for _ in range(30)]
    gc.freeze()
    try:
        window.mark(step=1)
        assert window.end() == []
        assert "gc.freeze" in window.why_not
        assert not any(one is mine for one in gc.get_objects())
    finally:
        gc.unfreeze()


def test_a_program_that_thaws_in_the_window_is_left_thawed() -> None:
    window = Survivors()
    window.begin(step=0)
    gc.unfreeze()
    window.mark(step=1)
    assert window.end() == []
    assert gc.get_freeze_count() < 1000


def test_nothing_is_kept_alive_after_the_end() -> None:
    window = Survivors()
    window.begin(step=0)
    node = Node()
    dies = weakref.ref(node)
    window.mark(step=1)
    born = window.end()
    assert any(one is node for one in born)
    del born, node
    assert dies() is None


def test_cycles_are_garbage_and_what_somebody_holds_is_not() -> None:
    held, dropped = Node(), Node()
    held.me, dropped.me = held, dropped
    below = Node()
    dropped.other = below  # type: ignore[attr-defined]
    objects: list[Any] = [held, dropped, below, *gc.get_referents(held), *gc.get_referents(dropped)]
    objects = [one for one in objects if type(one) is Node]
    objects = list({id(one): one for one in objects}.values())
    del dropped, below
    found = garbage_among(objects)
    assert held not in found
    assert len(found) == 2
