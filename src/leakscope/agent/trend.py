"""A cheap and generous trend: is there reason to look closer? Never a verdict.

Floors of consecutive blocks of readings (a floor ignores what a step makes and drops) are kept in
a short list; when it is full, neighbours are merged, so that blocks grow with the run and a slow
leak shows itself in the end as a fast one does at once.
"""

from __future__ import annotations

from array import array
from operator import sub

_MOST_FLOORS = 16
READINGS_A_FLOOR = 6


class Trend:
    """Floors of one counter."""

    def __init__(
        self,
        enough: int,
        readings_a_floor: int = READINGS_A_FLOOR,
        *,
        has_jumps: bool = False,
    ) -> None:
        self.enough = enough
        """A rise below this is not worth a look."""
        self._has_jumps = has_jumps
        """A pool takes a large region now and then: the largest jump does not count."""
        # No list: it grows, and a look would find it.
        self._floors = array("q")
        self._block = readings_a_floor
        self._readings = 0
        self._floor = 0

    def add(self, value: int) -> bool:
        """Take a reading in; True if a block has just been completed."""
        self._floor = value if self._readings == 0 else min(self._floor, value)
        self._readings += 1
        if self._readings < self._block:
            return False
        self._readings = 0
        if len(self._floors) == _MOST_FLOORS:
            pairs = zip(*[iter(self._floors)] * 2, strict=True)
            self._floors = array("q", [min(pair) for pair in pairs])
            self._block *= 2
        self._floors.append(self._floor)
        return True

    @property
    def rises(self) -> bool:
        """The last three floors go up, or lie all above the three before; and by enough since half
        of the run: what the first steps took at once is no reason to look at a later creep."""
        floors = self._floors
        if len(floors) < 3 or self.risen < self.enough:
            return False
        before, last = floors[-6:-3], floors[-3:]
        return last[0] < last[1] < last[2] or (len(before) == 3 and min(last) > max(before))

    @property
    def risen(self) -> int:
        """Since half of the run; 0 as long as nothing can be said."""
        if len(self._floors) < 3:
            return 0
        half = self._floors[(len(self._floors) - 1) // 2 :]
        jump = max(map(sub, half[1:], half[:-1])) if self._has_jumps else 0
        return half[-1] - half[0] - max(jump, 0)

    @property
    def is_empty(self) -> bool:
        return not self._floors and self._readings == 0
