"""How many instances of the program's own classes there are, look by look.

A linked list has no length, and its nodes often have slots and no weak references, so that neither
the lengths of containers nor the survivors of a window tell of it. The instances themselves do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_FEWEST_A_STEP = 0.3
_FEWEST = 8
_MOST_GROWING = 4
_SAMPLES = 6


class Population(NamedTuple):
    """The instances of one class, which have become more. Lives within one look only."""

    before: int
    then: int
    """How many there were when the window was opened."""
    members: list[Any]

    @property
    def sample(self) -> list[Any]:
        return self.members[:: max(len(self.members) // _SAMPLES, 1)][:_SAMPLES]


Counts = dict[int, int]
"""Instances by the id of their class: a class may have its own hash."""


def note_populations(instances: list[Any]) -> Counts:
    counts: Counts = {}
    for key in map(id, map(type, instances)):
        counts[key] = counts.get(key, 0) + 1
    return counts


def find_growing_populations(
    instances: list[Any], before: Counts, then: Counts, steps: int
) -> list[Population]:
    """Classes with more instances at the opening of the window, and no fewer now; the largest
    growth first. A class that had none at the last look may have been defined since."""
    now = note_populations(instances)
    fewest = max(_FEWEST, _FEWEST_A_STEP * steps)
    growing = {
        key
        for key, count in now.items()
        if key in before and then.get(key, 0) - before[key] >= fewest and count >= then[key]
    }
    members: dict[int, list[Any]] = {key: [] for key in growing}
    for one in instances:
        if id(type(one)) in growing:
            members[id(type(one))].append(one)
    populations = [Population(before[key], then[key], those) for key, those in members.items()]
    populations.sort(key=lambda one: one.before - len(one.members))
    return populations[:_MOST_GROWING]
