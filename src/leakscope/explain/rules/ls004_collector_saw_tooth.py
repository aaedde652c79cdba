"""LS004: garbage in cycles builds up until the collector frees it."""

import numpy as np

from leakscope import text
from leakscope.explain.rule import RunCase, harmless
from leakscope.judge.account import BLOCK_BYTES
from leakscope.judge.series import BLOCKS, IN_USE
from leakscope.model import Series

_COLLECTIONS = 3
"""Fewer might have met a fall by chance."""
_FREEING = 0.7
"""Share of the collections that must have freed something."""
_OF_ALL_FALLS = 0.8
"""Share of all that was given back: memory falls at collections, and hardly anywhere else."""


@harmless("LS004")
def collector_saw_tooth(case: RunCase) -> str | None:
    """Garbage in reference cycles builds up until the collector frees it, again and again.

    ## Why it looks like a leak
    Objects that refer to each other in a circle are not freed when the last name is gone. They wait
    for the collector, which comes when enough of them have been made. Until then memory rises, step
    by step, as with a leak; then it falls back.

    ## Example
    ```python
    class Node:
        def __init__(self, parent):
            self.parent = parent
            parent.children.append(self)  # a circle: parent, list, child, parent
    ```

    ## What to do
    Nothing, if the teeth fit into memory. Otherwise break the circle with a weak reference, or call
    `gc.collect()` every so many steps.

    ## Not this rule when
    The floors after the collections rise too: then something is kept. Garbage that no collection
    comes for is LS505.
    """
    if not case.is_steady:
        return None
    for metric, each in ((IN_USE, 1), (BLOCKS, BLOCK_BYTES.value)):
        series = case.series(metric)
        freed = _freed_each_time(series) * each if series is not None else 0.0
        if series is not None and freed >= case.worth_saying:
            times = len(series.floors)
            apart = float(np.median(np.diff([series.steps[i] for i in series.floors])))
            return (
                f"{text.plural(times, 'full garbage collection')}, about every "
                f"{text.count(round(apart))} steps, freed {text.size(freed)} each: garbage in "
                "reference cycles, which builds up and is given back."
            )
    return None


def _freed_each_time(series: Series) -> float:
    """What a collection frees, in the middle; 0 if falls are not at collections."""
    floors = np.array([i for i in series.floors if i > 0], dtype=np.intp)
    if len(floors) < _COLLECTIONS:
        return 0.0
    moves = np.diff(np.asarray(series.values, dtype=np.float64))
    freed = -moves[floors - 1]
    at_collections, everywhere = freed[freed > 0].sum(), -moves[moves < 0].sum()
    is_freeing = float(np.mean(freed > 0)) >= _FREEING
    is_freeing = is_freeing and at_collections >= _OF_ALL_FALLS * everywhere
    return float(np.median(freed)) if is_freeing else 0.0
