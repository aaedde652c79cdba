"""Many rows in, few out: the lowest and the highest of each stretch, so that no spike is lost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leakscope.judge.axis import Floats

Chosen = NDArray[np.intp]


def extremes(steps: Floats, values: Floats, stretches: int) -> Chosen:
    """Indices of the first, the last, and the lowest and highest value of each stretch of steps."""
    if len(steps) <= 2 * stretches:
        return np.arange(len(steps))
    width = (steps[-1] - steps[0]) / stretches
    number = np.minimum(((steps - steps[0]) / width).astype(np.intp), stretches - 1)
    begins = np.flatnonzero(np.diff(number, prepend=-1))
    ends = np.append(begins[1:], len(steps))
    chosen = {0, len(steps) - 1}
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        part = values[begin:end]
        chosen.add(begin + int(np.argmin(part)))
        chosen.add(begin + int(np.argmax(part)))
    return np.array(sorted(chosen), dtype=np.intp)


def held_at(steps: Floats, values: Floats, wanted: Floats) -> Floats:
    """The last value read up to each wanted step; the first one before there was any."""
    place = np.searchsorted(steps, wanted, side="right") - 1
    return np.asarray(values[np.maximum(place, 0)], dtype=np.float64)


def exactly_at(steps: Floats, values: Floats, wanted: Floats) -> tuple[float | None, ...]:
    """The value read at each wanted step, and None where none was."""
    place = np.minimum(np.searchsorted(steps, wanted), len(steps) - 1)
    is_read = steps[place] == wanted
    return tuple(
        value if found else None
        for value, found in zip(values[place].tolist(), is_read.tolist(), strict=True)
    )
