"""Two looks and what lies between them: which holders are told as one."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from leakscope.model import Holding, Moment
from leakscope.observe import inquiry
from leakscope.observe.inquiry import Inquiry


class Curves:
    def __init__(self) -> None:
        self.frames: list[Any] = []
        self.losses: list[Any] = []
        self.by_class: dict[str, list[Any]] = {"cat": [], "dog": []}


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The heap of a test runner is large, and a search gives up after a while."""
    monkeypatch.setattr(inquiry, "_SEARCH_NS", 60_000_000_000)


def _look(grow: Callable[[int], None]) -> list[Holding]:
    looks = Inquiry("1-1", lambda: Moment(0, 0))
    grow(30)
    looks.first_look(30)
    grow(30)
    looks.open_window(60, 4)
    grow(4)
    return looks.second_look(64, 200_000.0)


def _ours(holdings: list[Holding]) -> dict[str | None, Holding]:
    mine = [one for one in holdings if any(link.type == "Curves" for link in one.path)]
    return {one.path[one.grows_at].name: one for one in mine}


def test_two_attributes_of_one_object_are_two_holders() -> None:
    """Breaks when a list of frames is said to have two more per step, one of them a loss."""
    curves = Curves()
    vars(curves)  # the attributes lie in a dict from here on

    def grow(steps: int) -> None:
        curves.frames.extend(bytearray(5_000) for _ in range(steps))
        curves.losses.extend(bytearray(3_000) for _ in range(steps))

    found = _ours(_look(grow))
    assert found["frames"].counts[0] == (30, 30)
    assert found["frames"].counts[-1] == (64, 64)
    assert found["losses"].counts[-1] == (64, 64)


def test_a_list_that_is_copied_with_all_it_has_is_found() -> None:
    """Breaks with a metric that puts its state aside in every call, as those of torchmetrics do:
    no list and no array lives from one look to the next."""
    curves = Curves()
    gone: list[Any] = []

    def grow(steps: int) -> None:
        for _ in range(steps):
            # Held until the next, so that it does not get the same address again.
            gone[:] = [curves.frames]
            curves.frames = [numpy.array(one) for one in curves.frames] + [numpy.zeros(700)]

    found = _ours(_look(grow))["frames"]
    assert found.counts == ((30, 30), (64, 64))
    assert found.bytes_each == pytest.approx(5_600, rel=0.1)


def test_the_lists_of_a_dict_are_one_holder() -> None:
    curves = Curves()

    def grow(steps: int) -> None:
        for kept in curves.by_class.values():
            kept.extend(bytearray(5_000) for _ in range(steps))

    (found,) = (one for one in _ours(_look(grow)).values())
    assert found.holders == 2
    assert found.counts[-1] == (64, 128)


def test_attributes_of_an_object_of_the_standard_library_are_looked_at() -> None:
    """Breaks when `setattr(state, name, array)` is growth that nobody holds: no collector tracks a
    dict of arrays."""
    state = SimpleNamespace()

    def grow(steps: int) -> None:
        for _ in range(steps):
            setattr(state, f"batch_{len(vars(state))}", bytes(5_000))

    (found,) = [one for one in _look(grow) if any("state" in link.via for link in one.path)]
    assert found.counts[-1] == (64, 64)


def _hide(steps: int, hidden: tuple[Any, ...]) -> tuple[Any, ...]:
    """One more array in each of so many steps, each in a tuple with the one before."""
    for _ in range(steps):
        hidden = (numpy.ones(20_000), hidden)
    return hidden


@pytest.mark.parametrize("is_held", [True, False])
def test_arrays_where_no_look_comes_are_no_native_memory(is_held: bool) -> None:
    """Breaks when the report says that no Python object holds what one does; or when it never says
    so."""
    looks = Inquiry("1-1", lambda: Moment(0, 0))
    looks.first_look(30)
    looks.begin_native(60)
    hidden = _hide(3 * is_held, ())
    assert not looks.is_held_after_all(63, 3 * 160_000, 3)
    hidden = _hide(9 * is_held, hidden)
    assert looks.is_held_after_all(72, 9 * 160_000, 9) is is_held
    assert looks.is_visible is is_held
    del hidden
