"""Device memory in the rows of the pulse: two columns a device, paced by their own cost."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from time import monotonic_ns

from leakscope.observe.devices.door import Door

_UNREAD = -1
_FIRST_PAUSE, _PAUSE, _PAUSE_GROWS = 5, 300, 2
_USUAL_COST_NS = 20_000.0
"""A reading takes 13 to 22 µs a device (H200, torch 2.11): 0.3 % of the time at worst, as the C
heap's counters; a step of 1.5 ms gets one every fourth time, a step of 10 ms every time."""
_SEARCH_EVERY = 64
"""Readings after which devices that had no memory are asked again."""


class DeviceRows:
    """The counters of all devices that the process uses."""

    def __init__(self, door: Door, rows: int, learn: Callable[[float, float], float]) -> None:
        self._door = door
        self._rows = rows
        self._learn = learn
        self._used: list[int] = []
        self._columns: dict[str, array[int]] = {}
        self.reset()

    def reset(self) -> None:
        """In a forked child: its parent's device is not its own."""
        self._used.clear()
        self._columns.clear()
        self.allocated_bytes = _UNREAD
        self.by_device: dict[str, int] = {}
        """Allocated, at the last reading; and their sum, below zero if this row has none."""
        self._readings = 0
        self._next_ns = 0
        self._cost_ns = _USUAL_COST_NS
        self._pause = _FIRST_PAUSE

    @property
    def used(self) -> tuple[int, ...]:
        """Numbers of the devices of which memory is reserved."""
        return tuple(self._used)

    def take(self, row: int, now_ns: int, stretch: float) -> None:
        """Read all devices in use, if it is time."""
        self.allocated_bytes = _UNREAD
        for column in self._columns.values():
            column[row] = _UNREAD
        if now_ns < self._next_ns or not self._door.is_open():
            return
        began_ns = monotonic_ns()
        if self._readings % _SEARCH_EVERY == 0 or not self._used:
            self._search()
        self._readings += 1
        total = 0
        for index in self._used:
            allocated, reserved = self._door.read(index)
            name = f"{self._door.kind}:{index}"
            self._columns[f"{name}.allocated_bytes"][row] = allocated
            self._columns[f"{name}.reserved_bytes"][row] = reserved
            self.by_device[name] = allocated
            total += allocated
        if self._used:
            self.allocated_bytes = total
        ended_ns = monotonic_ns()
        self._cost_ns = self._learn(self._cost_ns, ended_ns - began_ns)
        self._next_ns = ended_ns + int(self._cost_ns * self._pause * stretch)
        self._pause = min(self._pause + _PAUSE_GROWS, _PAUSE)

    def columns(self) -> dict[str, array[int]]:
        return self._columns

    def counters(self) -> dict[str, int]:
        """Allocated now, by device."""
        if not self._door.is_open():
            return {}
        return {
            f"{self._door.kind}:{index}.allocated_bytes": self._door.read(index)[0]
            for index in self._used
        }

    def _search(self) -> None:
        for index in range(self._door.count()):
            if index not in self._used and self._door.read(index)[1] > 0:
                self._used.append(index)
                for what in ("allocated_bytes", "reserved_bytes"):
                    column = array("q", [_UNREAD]) * self._rows
                    self._columns[f"{self._door.kind}:{index}.{what}"] = column
