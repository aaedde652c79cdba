"""Things that are in use somewhere else just now, and are the items' all the same.

A replay buffer hands 32 of its transitions to the step that is under way, drawn at random: a third
of its frames have another holder at that moment, and do not count as what the buffer keeps. But
what most items keep alone is what each item brings, and the others have only lent it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from leakscope.observe.reach import SHARED, TOGETHER, Reached

_FEWEST_ITEMS = 4
"""Of fewer, two alike say nothing about most. A choice."""
_WORTH_IT = 0.03
"""Of what the items keep: less is not worth the question who leads there. A choice."""

_Alike = tuple[int, int, int]
"""Role, type and size, by ids: what is alike in all three has the same part in its item."""


def with_lent(reached: Reached, owners: list[int]) -> list[int]:
    """The owners, with what is lent out given back to the items."""
    if reached.items < _FEWEST_ITEMS:
        return owners
    shared: dict[_Alike, list[int]] = {}
    for number, owner in enumerate(owners):
        if owner == SHARED:
            shared.setdefault(_looks(reached, number), []).append(number)
    own: dict[_Alike, list[int]] = {}
    kept = 0
    for number, owner in enumerate(owners):
        if owner != SHARED:
            kept += reached.sizes[number]
            if (alike := _looks(reached, number)) in shared:
                own.setdefault(alike, []).append(number)
    mostly_own = {alike: its for alike, its in own.items() if len(its) >= len(shared[alike])}
    if _bytes_of(reached, (shared[alike] for alike in mostly_own)) < _WORTH_IT * kept:
        return owners
    asked = {number for alike in mostly_own for number in (*shared[alike], *mostly_own[alike])}
    leading = _items_leading_to(reached, asked)
    given_back = list(owners)
    for alike, its in mostly_own.items():
        # What more of them lead to is everybody's; what fewer do, at the end of a sample, is also
        # their neighbour's.
        ((usual, _),) = Counter(leading[number] for number in its).most_common(1)
        for number in shared[alike]:
            if leading[number] == usual:
                given_back[number] = TOGETHER
    return given_back


def _looks(reached: Reached, number: int) -> _Alike:
    return id(reached.roles[number]), id(type(reached.things[number])), reached.sizes[number]


def _bytes_of(reached: Reached, groups: Iterable[list[int]]) -> int:
    return sum(reached.sizes[number] for group in groups for number in group)


def _items_leading_to(reached: Reached, asked: set[int]) -> Counter[int]:
    """How many of the items lead to each."""
    leading: Counter[int] = Counter()
    for item in range(reached.items):
        met, waiting = {item}, [item]
        while waiting:
            for number in reached.references[waiting.pop()]:
                if number not in met:
                    met.add(number)
                    waiting.append(number)
        leading.update(met & asked)
    return leading
