"""The pulse: a row of counters at a step, in preallocated columns, written in blocks.

Nothing here grows with the number of steps. Reading a row costs 2 to 4 µs; a counter whose
price is higher (mallinfo2 walks the free lists: 0.3 µs to 0.5 ms; allocated blocks: 20 to 80 µs)
is read only when its own share of the time allows it, and is null in between.
"""

from __future__ import annotations

import ctypes
import os
import sys
from array import array
from operator import sub
from time import monotonic_ns, process_time_ns

from leakscope.model import Pulses
from leakscope.observe.counters.native_heap import HeapReader
from leakscope.observe.devices.door import Door
from leakscope.observe.devices.rows import DeviceRows
from leakscope.record.format import delta_code
from leakscope.record.writer import Writer, open_high

COLUMNS = (
    "mono_ns",
    "step",
    "rss_bytes",
    "in_use_bytes",
    "held_bytes",
    "blocks_count",
    "collections_count",
)
_ROWS = 128
_FLUSH_NS = 200_000_000
"""What a worker killed in its first second loses at most. A block costs 0.2 ms and what the program
had in the caches, 1 % of the time at five blocks a second (measured on the 0.5 ms MLP): the older
the process, the longer the blocks, up to a second."""

_ROW_PAUSE, _ROW_FIRST_PAUSE = 600, 2
_HEAP_PAUSE, _HEAP_FIRST_PAUSE = 450, 5
_BLOCKS_PAUSE, _BLOCKS_FIRST_PAUSE, _BLOCKS_PAUSE_GROWS = 1500, 20, 20
_PAUSE_GROWS, _LONG_PAUSE, _LONG_PAUSE_GROWS = 2, 200, 6
"""A reading that took t may be repeated after so many times t: 0.17 %, 0.22 % and 0.07 % of the
time at worst. Between real steps a row costs 25 to 75 µs, not the 3 µs of a tight loop, because
its code and the kernel's have left the processor's caches, and the program's own are as cold after
it: it pays once more. A short run must have its rows too, so the pauses start small and grow with
each reading, and faster from about the hundredth row on. With a fifth fewer in the first second, a
leak in shared memory that lasted 0.9 s was looked at in 4 runs of 10 instead of 10 of 12; where the
faster growth begins, and 6, are choices."""

_USUAL_COSTS_NS = (10_000.0, 5_000.0, 30_000.0)
"""Of a row, the heap's counters and the number of blocks, before they have been measured."""

_BUDGET = 0.01

_USUAL_BESIDE_NS, _MOST_BESIDE_NS = 10_000.0, 1_000_000
"""Roles, limits and the question whether to look take some 20 µs a row; anything longer is a look,
or was interrupted."""

_ROWS_IN_A_LIFE = 2000
_LONGEST_PAUSE_NS = 1_000_000_000
"""A row is not worth more than a 2000th of the time there has been, nor is a second lost on a long
run: a day of training leaves 4 MB, and a judge needs a few thousand values."""

_MOST_STARVED, _MANY = 16.0, 1.5
"""One of many workers gets a part of a core: what it spends on rows is a share of that part, not of
the time on the clock. Eight workers on two cores: about 3 % of their processor time otherwise, and
1 % with a share of the part alone (bench/workers.py); what one of so many says, the others say too,
so it is the power 1.5. That and the most it stretches are choices: one that waits for its turn
must have rows too."""

_STATM_BYTES = 96
_pread = ctypes.PyDLL(None).pread
_pread.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_long)
_pread.restype = ctypes.c_ssize_t
"""Not `os.pread`, which lets other threads run meanwhile: in the clock's thread the collector is
off at that moment, and the program would see it off, or switch it and be overruled by us."""

_UNREAD = -1
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Pulse:
    """Counters at steps, for one process and one source of steps at a time."""

    def __init__(
        self, process: str, writer: Writer, read_heap: HeapReader | None, budget: float = _BUDGET
    ) -> None:
        self.process = process
        self.source = ""
        self.spent_ns = 0
        self.taken_ns = 0
        self.rss_bytes = self.in_use_bytes = self.blocks_count = _UNREAD
        """The last row's values, for whoever decides on a closer look; below zero: not read."""
        self.is_disturbed = False
        """True while a window of ours is open: the heap's counters would count it too."""
        self.own_bytes = 0
        self.own_blocks = 0
        """What we ourselves keep in the heap between two looks."""
        self.devices: DeviceRows | None = None
        self.has_pool = False
        """Set where a library takes large regions from malloc, and hands them out itself: malloc
        then has bytes in use that nobody has touched. What is resident and not held free stands
        for bytes in use from there on."""
        self._writer = writer
        self._read_heap = read_heap
        # The pauses are for the budget of 1 %; with another one they stretch or shrink.
        self._stretch = self._by_budget = min(max(_BUDGET / budget, 0.02), 100.0)
        self._is_one_of_many = False
        self._many_since = (0, 0)
        self._statm = -1
        self._text = ctypes.create_string_buffer(_STATM_BYTES)
        self._columns = [array("q", bytes(8 * _ROWS)) for _ in COLUMNS]
        self._used = 0
        self._opened_ns = 0
        self._started_ns = 0
        self.next_row_ns = 0
        self._next_heap_ns = 0
        self._next_blocks_ns = 0
        self._row_ns, self._heap_ns, self._blocks_ns = _USUAL_COSTS_NS
        self._beside_ns = _USUAL_BESIDE_NS
        self._row_pause = _ROW_FIRST_PAUSE
        self._heap_pause = _HEAP_FIRST_PAUSE
        self._blocks_pause = _BLOCKS_FIRST_PAUSE

    def take(self, now_ns: int, step: int, collections: int) -> None:
        """Take a row now; write the block if it is full or old."""
        row = self._used
        if row == 0:
            self._opened_ns = now_ns
        columns = self._columns
        columns[0][row] = now_ns
        columns[1][row] = step
        self.taken_ns = now_ns
        self.rss_bytes = columns[2][row] = self._read_rss_bytes()
        self.in_use_bytes = self.blocks_count = _UNREAD
        columns[3][row] = columns[4][row] = columns[5][row] = _UNREAD
        columns[6][row] = collections
        ended = monotonic_ns()
        is_calm = not self.is_disturbed
        if self._read_heap is not None and now_ns >= self._next_heap_ns and is_calm:
            began = ended
            in_use, columns[4][row] = self._read_heap()
            if self.has_pool:
                in_use = _without_held(self.rss_bytes, columns[4][row])
            self.in_use_bytes = columns[3][row] = in_use - self.own_bytes if in_use >= 0 else in_use
            ended = monotonic_ns()
            self._heap_ns = smooth(self._heap_ns, ended - began)
            self._next_heap_ns = ended + int(self._heap_ns * self._heap_pause * self._stretch)
            self._heap_pause = _longer(self._heap_pause, _HEAP_PAUSE)
        blocks_ns = 0
        if now_ns >= self._next_blocks_ns and is_calm:
            began = ended
            self.blocks_count = columns[5][row] = sys.getallocatedblocks() - self.own_blocks
            ended = monotonic_ns()
            blocks_ns = ended - began
            self._blocks_ns = smooth(self._blocks_ns, blocks_ns)
            pause_ns = self._blocks_ns * self._blocks_pause * self._stretch
            self._next_blocks_ns = ended + int(pause_ns)
            if self._blocks_pause < _BLOCKS_PAUSE:
                self._blocks_pause += _BLOCKS_PAUSE_GROWS
        if self.devices is not None:
            # A window of ours takes no device memory: these are read whatever is open.
            self.devices.take(row, now_ns, self._stretch)
            ended = monotonic_ns()
        self._used = row + 1
        age_ns = now_ns - self._started_ns if self._started_ns else 0
        flush_ns = min(max(_FLUSH_NS, age_ns // 5), _LONGEST_PAUSE_NS)
        if self._used == _ROWS or now_ns - self._opened_ns >= flush_ns:
            self.flush()
            if self._is_one_of_many:
                self._stretch = self._by_budget * self._starved(now_ns)
            ended = monotonic_ns()
        spent_ns = ended - now_ns
        if not self._started_ns:
            self._started_ns = now_ns
        by_age_ns = min(age_ns // _ROWS_IN_A_LIFE, _LONGEST_PAUSE_NS)
        self._row_ns = smooth(self._row_ns, spent_ns - blocks_ns)
        by_cost_ns = int(self._row_ns * self._row_pause * self._stretch)
        self.next_row_ns = ended + max(by_cost_ns, by_age_ns)
        self._row_pause = _longer(self._row_pause, _ROW_PAUSE)
        self.spent_ns += spent_ns

    def share_cores(self) -> None:
        """This process is one of many that do the same: its rows are paid from what it gets."""
        self._is_one_of_many = True
        self._many_since = monotonic_ns(), process_time_ns()

    def _starved(self, now_ns: int) -> float:
        since_ns, used_ns = self._many_since
        return starved(now_ns - since_ns, process_time_ns() - used_ns)

    @property
    def pace(self) -> tuple[float, float, int, int, int]:
        """What rows are thought to cost, and how far apart they are for that."""
        pauses = self._row_pause, self._heap_pause, self._blocks_pause
        return self._row_ns, self._beside_ns, *pauses

    @pace.setter
    def pace(self, pace: tuple[float, float, int, int, int]) -> None:
        self._row_ns, self._beside_ns, *pauses = pace
        self._row_pause, self._heap_pause, self._blocks_pause = pauses

    def also_took(self, beside_ns: int) -> None:
        """What else was done at this row: the next one comes so much later, and costs as much."""
        if beside_ns > _MOST_BESIDE_NS or self.is_disturbed:
            return  # a look, which has a budget of its own
        self._beside_ns = smooth(self._beside_ns, beside_ns)
        self.next_row_ns += int(self._beside_ns * self._row_pause * self._stretch)
        self.spent_ns += beside_ns

    def flush(self) -> None:
        if self._used:
            used, self._used = self._used, 0
            columns = {
                name: _code(column[:used].tolist())
                for name, column in zip(COLUMNS, self._columns, strict=True)
            }
            if self.devices is not None:
                for name, column in self.devices.columns().items():
                    columns[name] = _code(column[:used].tolist())
            self._writer.append(Pulses(self.process, self.source, columns, self.spent_ns))

    def counters(self) -> dict[str, int]:
        """The same counters once, outside the rows: at a collection, at a save."""
        blocks = sys.getallocatedblocks() - self.own_blocks
        values = {"rss_bytes": self._read_rss_bytes(), "blocks_count": blocks}
        if self._read_heap is not None:
            in_use, values["held_bytes"] = self._read_heap()
            if self.has_pool:
                in_use = _without_held(values["rss_bytes"], values["held_bytes"])
            values["in_use_bytes"] = in_use - self.own_bytes if in_use >= 0 else in_use
        if self.devices is not None:
            values |= self.devices.counters()
        return {name: value for name, value in values.items() if value != _UNREAD}

    def watch_devices(self, door: Door) -> None:
        """Read the memory of these devices too, from when the program uses them."""
        self.devices = DeviceRows(door, _ROWS, smooth)

    def after_fork(self, process: str, writer: Writer) -> None:
        """A child starts with empty columns and its own file."""
        self.process = process
        self._writer = writer
        self._statm = -1
        self._used = 0
        if self.devices is not None:
            self.devices.reset()
        self._started_ns = 0
        self._stretch, self._is_one_of_many = self._by_budget, False
        self.spent_ns = 0
        self.is_disturbed = False
        self.own_bytes = self.own_blocks = 0
        self.next_row_ns = self._next_heap_ns = self._next_blocks_ns = 0
        self._row_pause = _ROW_FIRST_PAUSE
        self._heap_pause = _HEAP_FIRST_PAUSE
        self._blocks_pause = _BLOCKS_FIRST_PAUSE

    def _read_rss_bytes(self) -> int:
        try:
            return self._resident_pages() * _PAGE
        except (OSError, ValueError, IndexError):
            # Not opened yet, or the program closed every descriptor and reused the number.
            return self._reopen_statm()

    def _reopen_statm(self) -> int:
        try:
            self._statm = open_high("/proc/self/statm", os.O_RDONLY)
            return self._resident_pages() * _PAGE
        except (OSError, ValueError, IndexError):
            return _UNREAD

    def _resident_pages(self) -> int:
        read = _pread(self._statm, self._text, _STATM_BYTES, 0)
        return int(self._text.raw[: max(read, 0)].split(None, 2)[1])


def _longer(pause: int, most: int) -> int:
    return min(pause + (_PAUSE_GROWS if pause < _LONG_PAUSE else _LONG_PAUSE_GROWS), most)


def starved(elapsed_ns: int, used_ns: int) -> float:
    """How much rarer its rows are, by how many times as long as it ran a process has been there."""
    if used_ns <= 0:
        return 1.0
    return float(min(max(elapsed_ns / used_ns, 1.0) ** _MANY, _MOST_STARVED))


def _without_held(rss_bytes: int, held_bytes: int) -> int:
    return rss_bytes - held_bytes if rss_bytes >= 0 and held_bytes >= 0 else _UNREAD


def _code(values: list[int]) -> list[int | None]:
    """Deltas of a column; one without holes is done in C."""
    if _UNREAD in values:
        return delta_code(None if value == _UNREAD else value for value in values)
    return [values[0], *map(sub, values[1:], values)]


def smooth(estimate_ns: float, measured_ns: float) -> float:
    """The cost of a reading, learned slowly and never from one measurement alone.

    On a busy machine a reading of 10 µs now and then takes 10 ms, because another process had the
    processor meanwhile. Taken at its word, one such reading would silence the pulse for seconds
    (measured: 16 rows where there should have been 200, with five processes on two cores).
    """
    return estimate_ns + (min(measured_ns, 4 * estimate_ns) - estimate_ns) / 8
