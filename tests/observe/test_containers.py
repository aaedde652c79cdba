"""Containers that grew: found by length, without running a line of the program's own."""

from __future__ import annotations

import gc
from collections import OrderedDict, defaultdict, deque
from typing import Any

import pytest

from leakscope.observe.containers import (
    Grower,
    Lengths,
    find_again,
    find_growing,
    group_containers,
    note_lengths,
)


class Hostile(list[int]):
    """Every method a careless observer might call raises."""

    def _refuse(self, *args: Any) -> Any:
        raise AssertionError("a method of the program was called")

    __len__ = __iter__ = __eq__ = __bool__ = __getitem__ = __hash__ = __repr__ = _refuse  # type: ignore[assignment]


def lengths(objects: list[Any], step: int, *, deep: bool = False) -> Lengths:
    return note_lengths(group_containers(objects, is_deep=deep), step, is_deep=deep)


def growers(objects: list[Any], before: Lengths, step: int) -> list[Grower]:
    now = lengths(objects, step, deep=before.is_deep)
    return find_again(find_growing(now, before), objects, is_deep=before.is_deep)


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
    before = lengths(gc.get_objects(), step=10)
    for number in range(1, 21):
        add(it, number)
    everything = growers(gc.get_objects(), before, step=30)
    (found,) = [grower for grower in everything if grower.it is it]
    assert (found.before, found.now) == (1, 21)
    assert len(found.newest(4)) == 4


def test_the_newest_are_what_was_added_last() -> None:
    it: list[object] = [object() for _ in range(5)]
    before = lengths([it], step=0)
    it.extend(object() for _ in range(10))
    (found,) = growers([it], before, step=10)
    assert found.newest(3) == it[-3:]


def test_no_method_of_the_program_runs() -> None:
    it = Hostile()
    before = lengths([it], step=0)
    for number in range(10):
        list.append(it, number)
    (found,) = growers([it], before, step=10)
    assert (found.before, found.now, found.newest(2)) == (0, 10, [8, 9])


def test_a_dict_of_atoms_is_found_by_a_deep_look_only() -> None:
    """The collector does not track it; its owner leads there."""
    owner = [{f"key {number}": float(number) for number in range(3)}]
    assert not gc.is_tracked(owner[0])
    shallow, deep = (lengths([owner], step=0, deep=deep) for deep in (False, True))
    for number in range(100, 200):
        owner[0][f"key {number}"] = float(number)
    assert growers([owner], shallow, step=100) == []
    (found,) = growers([owner], deep, step=100)
    assert found.it is owner[0]


def test_what_grew_less_than_once_in_twenty_steps_is_not_told() -> None:
    it: list[object] = []
    before = lengths([it], step=0)
    it.extend(object() for _ in range(4))
    assert growers([it], before, step=1000) == []
