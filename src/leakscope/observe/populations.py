"""How many instances of the program's own classes there are, look by look.

A linked list has no length, and its nodes often have slots and no weak references, so that neither
the lengths of containers nor the survivors of a window tell of it. The instances themselves do.
"""

from __future__ import annotations

import gc
from collections import Counter, deque
from typing import Any, NamedTuple

from leakscope.observe.own_things import held_by_the_program
from leakscope.observe.referents import referents_of

_FEWEST_A_STEP = 0.3
_FEWEST = 8
_MOST_GROWING = 4
"""As for survivors (observe/leads.py): one in three steps, and enough not to be a step's own. No
experiment chose them."""

_SAMPLES = 16
"""Of 6 edits of a document one weighed 6.0 to 8.9 KiB on average, where 7.4 is true: some share
what they keep, and some do not. No other number was tried."""

_MOST_ASKED = 20_000
_MOST_REACHED = 50_000
_MOST_OF_THEM = 0.5
_CONTAINERS = (dict, list, tuple, set, deque)


class Population(NamedTuple):
    """The instances of one class, which have become more. Lives within one look only."""

    before: int
    then: int
    """How many there were when the window was opened."""
    members: list[Any]
    steps: int = 0
    """Since there were as many as before; 0: since the last look."""
    entry: Any = None
    """The one that the program holds under a name, and that leads to the others: the head of the
    list, the root of the tree. Backwards from any other it is as far as the structure is deep, and
    a tree of 45 moves took all the time a search has."""

    @property
    def sample(self) -> list[Any]:
        return self.members[:: max(len(self.members) // _SAMPLES, 1)][:_SAMPLES]

    def references_of_others(self) -> Counter[int]:
        """How often those beside the sample refer to a thing, by its id: what an edit has replaced
        is what the edit before it had made, and no sample has both."""
        sample = set(map(id, self.sample))
        others = [one for one in self.members[:_MOST_ASKED] if id(one) not in sample]
        held = referents_of(*others)
        held += referents_of(*[one for one in held if type(one) is dict])
        return Counter(map(id, held))


Counts = dict[int, int]
"""Instances by the id of their class: a class may have its own hash."""


Past = dict[int, tuple[int, int]]
"""The same with the step at which they were counted."""


def note_populations(instances: list[Any]) -> Counts:
    counts: Counts = {}
    for key in map(id, map(type, instances)):
        counts[key] = counts.get(key, 0) + 1
    return counts


def find_growing_populations(
    instances: list[Any], before: Past, then: Counts, step: int
) -> list[Population]:
    """Classes with more instances at the opening of the window, and no fewer now; the largest
    growth first. A class that had none at the last look may have been defined since."""
    now = note_populations(instances)
    growing = {
        key
        for key, count in now.items()
        if key in before and _has_grown(before[key], then.get(key, 0), step) and count >= then[key]
    }
    members: dict[int, list[Any]] = {key: [] for key in growing}
    for one in instances:
        if id(type(one)) in growing:
            members[id(type(one))].append(one)
    populations = [
        Population(before[key][1], then[key], those, step - before[key][0])
        for key, those in members.items()
    ]
    populations.sort(key=lambda one: one.before - len(one.members))
    return populations[:_MOST_GROWING]


def carry_on(before: Past, then: Counts, opened: int, step: int) -> Past:
    """What the next look compares with: how many there were when this window was opened. Or before,
    where a few have come since and are too few to be told of: 7 nodes of a linked list, between
    two looks that were a tenth of a second apart, and the list was not found again."""
    return {
        key: before[key]
        if key in before and before[key][1] < count and not _has_grown(before[key], count, step)
        else (opened, count)
        for key, count in then.items()
    }


def _has_grown(past: tuple[int, int], count: int, step: int) -> bool:
    since, before = past
    return count - before >= max(_FEWEST, _FEWEST_A_STEP * (step - since))


def with_entry(population: Population, instances: list[Any]) -> Population:
    """The same with its entry, if it has one."""
    members = frozenset(map(id, population.members))
    outside = [one for one in instances if id(one) not in members]
    for held in held_by_the_program(outside, ()):
        if id(held) in members and _leads_to_most(held, members):
            return population._replace(entry=held)
    return population


def _leads_to_most(entry: Any, members: frozenset[int]) -> bool:
    """Through each other and plain containers. One that is merely the latest does not."""
    seen = {id(entry)}
    level, reached = [entry], 1
    while level and len(seen) < _MOST_REACHED:
        new = {
            id(one): one
            for one in gc.get_referents(*level)
            if id(one) not in seen
            and (id(one) in members or any(type(one) is kind for kind in _CONTAINERS))
        }
        seen.update(new)
        level = list(new.values())
        reached += sum(key in members for key in new)
        if reached >= _MOST_OF_THEM * len(members):
            return True
    return False
