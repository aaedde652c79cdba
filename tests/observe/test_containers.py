"""Containers that grew: found by length, without running a line of the program's own."""

from __future__ import annotations

import gc
import itertools
import sys
import weakref
from collections import OrderedDict, defaultdict, deque
from itertools import islice
from typing import Any

import pytest

from leakscope.observe.containers import (
    Grower,
    Lengths,
    find_again,
    find_growing,
    note_lengths,
)
from leakscope.observe.old_heap import Heap


class Hostile(list[int]):
    """Every method a careless observer might call raises."""

    def _refuse(self, *args: Any) -> Any:
        raise AssertionError("a method of the program was called")

    __len__ = __iter__ = __eq__ = __bool__ = __getitem__ = __hash__ = __repr__ = _refuse  # type: ignore[assignment]


def growers(before: Lengths, step: int, *, deep: bool = False) -> list[Grower]:
    heap = Heap(is_deep=deep)
    return find_again(find_growing(note_lengths(heap, step), before), heap)


MAKERS: dict[str, Any] = {
    "list": lambda: [object()],
    "dict": lambda: {0: [object()]},
    "set": lambda: {object()},
    "deque": lambda: deque([object()]),
    "OrderedDict": lambda: OrderedDict({0: [object()]}),
    "defaultdict": lambda: defaultdict(list, {0: [object()]}),
}


def add(container: Any, number: int) -> None:
    one = object()
    if isinstance(container, dict):
        container[number] = [one]
    elif isinstance(container, set):
        container.add(one)
    else:
        container.append(one)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_container_that_grew_is_found(kind: str) -> None:
    it = MAKERS[kind]()
    before = note_lengths(Heap(), step=10)
    for number in range(1, 21):
        add(it, number)
    everything = growers(before, step=30)
    (found,) = [grower for grower in everything if grower.it is it]
    assert (found.before, found.now) == (1, 21)
    assert len(found.newest(4)) == 4


@pytest.mark.parametrize("passed", [0, 7, 60])
def test_the_end_of_a_tee_that_is_behind_is_as_long_as_what_is_kept_for_it(passed: int) -> None:
    """Breaks when a block's own parts are counted as items: the type from 3.12 on, the iterator and
    the next block."""
    ahead, behind = itertools.tee(itertools.count())
    next(islice(behind, passed, passed), None)
    before = note_lengths(Heap(), step=10)
    for _ in range(passed + 200):
        next(ahead)
    everything = growers(before, step=30)
    (found,) = [grower for grower in everything if grower.it is behind]
    assert (found.before, found.now) == (0, 200)
    assert found.newest(3) == [passed + 198, passed + 197, passed + 196]
    assert not [grower for grower in everything if grower.it is ahead]


def test_the_newest_are_what_was_added_before_the_last() -> None:
    it: list[object] = [object() for _ in range(5)]
    before = note_lengths(Heap(), step=0)
    it.extend(object() for _ in range(10))
    (found,) = [grower for grower in growers(before, step=10) if grower.it is it]
    assert found.newest(3) == it[-2:-5:-1]


def test_no_method_of_the_program_runs() -> None:
    it = Hostile()
    before = note_lengths(Heap(), step=0)
    for number in range(10):
        list.append(it, number)
    (found,) = [grower for grower in growers(before, step=10) if grower.it is it]
    assert (found.before, found.now, found.newest(2)) == (0, 10, [8, 7])


class Owner:
    def __init__(self) -> None:
        self.scores = {f"key {number}": float(number) for number in range(3)}


@pytest.mark.parametrize("deep", [False, True])
def test_a_dict_of_atoms_is_found_through_its_owner(deep: bool) -> None:
    """The collector does not track it."""
    owner = Owner()
    assert not gc.is_tracked(owner.scores)
    before = note_lengths(Heap(is_deep=deep), step=0)
    for number in range(100, 200):
        owner.scores[f"key {number}"] = float(number)
    assert any(grower.it is owner.scores for grower in growers(before, step=100, deep=deep))


def test_what_grew_less_than_once_in_twenty_steps_is_not_told() -> None:
    it: list[object] = []
    before = note_lengths(Heap(), step=0)
    it.extend(object() for _ in range(4))
    assert not any(grower.it is it for grower in growers(before, step=1000))


class Payload:
    pass


def test_looking_keeps_no_variable_alive() -> None:
    """Breaks when the dict that holds a frame's variables for us is left filled: on 3.11 and 3.12
    it is kept by the frame, and a look that lists it before reading it takes it for another's."""

    def step(number: int) -> bool:
        payload = Payload()
        dies = weakref.ref(payload)
        Heap()
        del payload
        return dies() is None

    assert all(step(number) for number in range(3))


def test_looking_twice_in_one_function_keeps_nothing_alive() -> None:
    dead = []
    for _ in range(3):
        payload = Payload()
        dies = weakref.ref(payload)
        Heap()
        del payload
        dead.append(dies() is None)
    assert dead == [True, True, True]


@pytest.mark.parametrize("kind", ["list", "dict", "set", "deque"])
def test_an_entry_costs_its_container_what_the_container_is_larger_by(kind: str) -> None:
    """Breaks when the price of a slot is a guess: a dict's was 104 bytes, and is 20 to 60."""
    it = MAKERS[kind]()
    empty = sys.getsizeof(it)
    for number in range(1, 50_001):
        add(it, number)
    (found,) = (
        Grower(it, base, 1, 1, len(it)) for base in (list, dict, set, deque) if type(it) is base
    )
    assert found.slot_bytes == pytest.approx((sys.getsizeof(it) - empty) / 50_000, rel=0.05)


def test_a_table_that_was_emptied_is_not_the_price_of_its_next_entries() -> None:
    it = dict.fromkeys(range(100_000))
    for number in range(99_990):
        del it[number]
    assert sys.getsizeof(it) / len(it) > 100_000
    assert Grower(it, dict, 1, 1, len(it)).slot_bytes < 64
