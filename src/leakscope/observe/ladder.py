"""When to look closer. Cheap and generous; it never judges and shares no code with `judge/`.

    watching ── a counter's floors rise ──▶ first look (lengths and sizes noted)
    first    ── some steps later ─────────▶ window (new objects are traced and followed)
    window   ── a few steps later ────────▶ second look (what grew, who holds it, where it is made)
    second   ── twice the steps ──────────▶ window ─▶ second look again, as long as it rises
    second   ── little of it explained ───▶ native window ─▶ its end, twice (memray)

A program that does not grow hardly ever leaves the first line. A leak recurs with every step, so
depth is needed on few steps only.
"""

from __future__ import annotations

from enum import Enum

from leakscope.observe.budget import NATIVE_CREDIT_S, Budget
from leakscope.observe.ticker import TICK_NS
from leakscope.observe.trend import READINGS_A_FLOOR, Trend

_ENOUGH_BYTES = 48 << 10
_ENOUGH_BLOCKS = 2_500
_ENOUGH_PAGES = 4 << 20
"""Rises from which a look is worth its price. Clean training moves by less than 8 KiB after its
first steps, by up to 2,000 blocks (freed tuples that Python keeps, one more with each backward
pass), and resident memory by up to 2 MiB (thread stacks, pools of the C library); it has the word
only where malloc's own counters cannot be read."""

_ENOUGH_FOREIGN_BYTES = 4 << 20
_ENOUGH_FOREIGN_BLOCKS = 50_000
"""The same beside TensorFlow and JAX, where a look takes three times as long and leaks are large. A
steady `fit` takes 25 MiB at once for its pools, creeps by 1 to 2 MiB over thousands of batches, and
moves by 8,000 blocks from one collection to the next; a steady jitted loop of JAX moves by the
arrays in flight."""

_PUZZLING_BYTES = 1 << 20
"""Less within half of a run is what resident memory moves by anyway (see judge/account.py)."""

_STEPS_BETWEEN = 24
_STEPS_TRACED, _LONG_STEPS_TRACED = 4, 2
_LONG_STEP_NS = 50_000_000
"""Steps between the first and second look at least, and how many of them are traced: enough to
tell what is kept from what a step has in flight. Tracing makes a step two to five times as long
(16 frames; w1 of facts/torch.md), so of long steps fewer are traced."""

_FEWEST_RISES = 2
_RISE_BYTES, _OF_RISE = 4 << 10, 64
_PATIENCE = 4
"""Between the first look and the window memory must have risen to a new height twice (by more than
a step's own wavering, and than a part of the rise that called for the look), or so many times the
usual distance must have passed: of a program that keeps something once in 50 steps, 49 steps saw
one more in the list, which proves nothing. Made for two programs of the zoo (every 20 and every 50
steps); no other values were tried. The part: after a look 21 KiB came in six steps, and were two
rises beside one of 1.4 MiB, kept once in 20 steps."""

_USUAL_LOOK_NS = 100_000_000.0
_USUAL_NATIVE_NS = 120_000_000.0
"""The first native window: memray's import (30 ms beside torch), opening and closing (26 ms each
with torch's libraries), and allocations that take half as long again while it is open. The second
is as dear as the first was, less what is done once. By itself the first says nothing: where the
second costs no more than the first did (its steps are slowed by less than was done once), it need
not be earned. While it had to be, with the import in its price, zoo/native-tables-ctypes had one
window and no answer in three runs of three: 306 to 383 ms were asked for, 99 to 287 were left."""
_STEPS_IN_NATIVE_WINDOW = (3, 9)
_TIMES_AS_LONG = 2
"""Of the first and the second: what a step has in flight is the same in both, what it leaves behind
is three times as much in the longer. Of short steps a row has several, and the first window may be
longer than meant: five steps and nine tell nothing (one run in two of zoo/native-tables-ctypes), so
the second is twice the first as it was."""
_ENOUGH_EXPLAINED = 0.5
_LOOKS_BEFORE_NATIVE = 2
_AT_MOST_ROWS = 0.6
"""What is kept once an epoch has hardly grown between the first look and the second: where memory
rose at few rows only, it is looked for again, over twice the steps, before native memory is
suspected; and by the clock always, for on a busy machine three rounds of a loop may be all that
lies between two looks, and a list with three more is nobody's leak yet. 0.6 parts the two programs
it was made for (native memory at every step, a tensor at every fiftieth); no other value was
tried."""
_MOST_LOOKS = 12

_WELL_EXPLAINED = (0.8, 1.25)
_CREDIT_KEPT_S = 40.0
"""Where the holders found weigh what has grown, the next look only confirms it: it waits until it
is earned, but for a third of the credit. In a PyTorch process of 0.5 ms steps the second pair of
looks took 360 ms of the first two seconds (bench/workloads/leaking.py) and said nothing new. No
other values were tried."""


_FOLLOW_CREDIT_S = 60.0
"""More of it for the second look, once there has been a first: alone the first says nothing. It is
dearer than was thought on a slow or crowded machine: of 0.6 s it took 0.5 instead of 0.2 in two
programs of a yardstick, and the run ended without an answer."""

_FOREIGN_STEPS_A_FLOOR = 3
"""Where models are trained one after another, thirty of them have few batches each, and few rows:
three of the usual floors would be half of the run."""

_BLOCKS_A_FLOOR = 3
"""Readings of Python's blocks in a floor, at most. Of a million blocks a reading takes 0.2 ms, and
one row in four has it: six of them were 24 rows, and a list that takes 22 blocks a step was first
looked at at step 400 of 500, too late for a second look (zoo/small-python-rows). In the rows of 154
processes that do not leak, floors of 3, of 4 and of 6 readings ask for a first look at the same
31."""

_TICKS_A_FLOOR, _FOREIGN_TICKS_A_FLOOR = 1, 2
_TICKS_BETWEEN = 7
"""By the clock rows are 20 ms apart at first and a tick is 10 ms: a program of half a second must
have been looked at twice by then. Beside TensorFlow and JAX one of half a second has built its
model by then."""


class Rung(Enum):
    FIRST = "first look"
    WINDOW = "window"
    SECOND = "second look"
    NATIVE = "native window"
    NATIVE_END = "end of the native window"


class Ladder:
    """Says at a row which rung, if any, is to be climbed now."""

    def __init__(self, budget: Budget, *, is_clock: bool = False, is_foreign: bool = False) -> None:
        """`is_foreign`: beside a framework with pools and a large heap of its own."""
        self._budget = budget
        if is_foreign:
            floor = _FOREIGN_TICKS_A_FLOOR if is_clock else _FOREIGN_STEPS_A_FLOOR
        else:
            floor = _TICKS_A_FLOOR if is_clock else READINGS_A_FLOOR
        enough_bytes = _ENOUGH_FOREIGN_BYTES if is_foreign else _ENOUGH_BYTES
        enough_blocks = _ENOUGH_FOREIGN_BLOCKS if is_foreign else _ENOUGH_BLOCKS
        self._bytes = Trend(enough_bytes, floor, has_jumps=is_foreign)
        self._blocks = Trend(enough_blocks, min(floor, _BLOCKS_A_FLOOR), has_jumps=is_foreign)
        self._pages = Trend(_ENOUGH_PAGES, floor)
        self._device = Trend(_ENOUGH_BYTES, floor)
        self._is_clock, self._is_foreign = is_clock, is_foreign
        self._begun_step = 0
        self._between = _TICKS_BETWEEN if is_clock else _STEPS_BETWEEN
        self._rows = self._rises_seen = self._last_bytes = 0
        self._highest: int | None = None
        self._rise_bytes = _RISE_BYTES
        self._rises_since_first = self._latest_step = 0
        self._next = Rung.FIRST
        self._at_step = 0
        self._first_step = 0
        self._last: tuple[int, int] = (0, 0)
        self._pace_ns = 0.0
        self._cost_ns = _USUAL_LOOK_NS
        self._looks = self._look_step = 0
        self._native_windows = self._native_steps = 0
        self._native_ns = _USUAL_NATIVE_NS
        self._native_once_ns = 0
        self._is_second_owed = False
        self._is_completed = False
        self._is_well_explained = False

    def due(
        self, now_ns: int, step: int, in_use: int, blocks: int, rss: int, device: int = -1
    ) -> Rung | None:
        """The rung to climb at this row. Values below zero were not read."""
        if self._begun_step == 0:
            self._begun_step = step  # by the clock, hundreds have passed while it was imported
        self._read(in_use, blocks, rss, device)
        if self._next is Rung.FIRST:
            wants = self._is_completed and self._rises and self._budget.allows(self._price, now_ns)
        else:
            wants = step >= self._at_step and self._may_go_on(now_ns) and self._has_come_up(step)
        self._is_completed = False
        return self._next if wants else None

    def climbed(
        self,
        rung: Rung,
        began_ns: int,
        ended_ns: int,
        step: int,
        *,
        cpu_ns: int,
        once_ns: int = 0,
        explained: float = 1.0,
        is_visible: bool = False,
    ) -> None:
        """A rung has been climbed: pay, and say when the next is due. `once_ns` of its cost will
        not come again; what grows `is_visible` to Python, so that no native window is needed."""
        # Time of the processor is what is paid: on a crowded machine a look waits for its turn.
        cost_ns = min(cpu_ns, ended_ns - began_ns)
        last_ns, last_step = self._last
        # By the clock, when the program goes on: a window that was opened 20 ms after a look of
        # 0.2 s met one entry more (zoo/manual-sgd-losses, five runs of six).
        goes_on = step + (ended_ns - began_ns) // TICK_NS if self._is_clock else step
        self._last = (ended_ns, step)
        if rung is Rung.FIRST:
            self._first_step = step
            self._cost_ns = max(cost_ns, 1)
            # A leak that took long to show itself is slow: it needs as long to show its holders.
            shortest = self._between - _STEPS_TRACED
            between = max(shortest, (step - self._begun_step) // 2)
            self._next, self._at_step = Rung.WINDOW, max(step + between, goes_on + shortest)
            self._highest = None
            self._rise_bytes = max(_RISE_BYTES, self._bytes.risen // _OF_RISE)
            self._rises_since_first = 0
            self._latest_step = self._at_step + (_PATIENCE - 1) * between
        elif rung is Rung.WINDOW:
            self._pace_ns = (began_ns - last_ns) / max(step - last_step, 1)
            self._next, self._at_step = Rung.SECOND, goes_on + self.traced_steps
        elif rung is Rung.SECOND:
            self._looks += 1
            self._look_step = step
            self._cost_ns = max(cost_ns, 1)
            cost_ns += self._slowed_ns(began_ns, last_ns, step - last_step)
            self._after_look(step, explained, is_visible)
        elif rung is Rung.NATIVE:
            self._native_ns = max(float(cost_ns - once_ns), 0.0)
            self._native_once_ns = once_ns
            self._next, self._at_step = Rung.NATIVE_END, step + self._steps_in_native_window
        else:
            self._native_windows += 1
            self._native_steps = step - last_step
            slowed_ns = self._slowed_ns(began_ns, last_ns, self._native_steps)
            times = self._steps_in_native_window / max(self._native_steps, 1)
            self._is_second_owed = slowed_ns * times <= slowed_ns + self._native_once_ns
            self._native_ns += cost_ns
            cost_ns += slowed_ns
            self._after_look(step, 0.0, is_visible=False)
        self._budget.pay(cost_ns, ended_ns - began_ns)

    def _after_look(self, step: int, explained: float, is_visible: bool) -> None:
        low, high = _WELL_EXPLAINED
        self._is_well_explained = low <= explained <= high
        is_unexplained = explained < _ENOUGH_EXPLAINED and (
            self._rises_at_most_rows or self._looks >= _LOOKS_BEFORE_NATIVE
        )
        is_unexplained = is_unexplained and not is_visible
        if is_unexplained and self._native_windows < len(_STEPS_IN_NATIVE_WINDOW):
            self._next, self._at_step = Rung.NATIVE, step + 1
            return
        # Twice as far as the last look was, however long native windows took since.
        distance = max(2 * (self._look_step - self._first_step), self._between)
        self._next, self._at_step = Rung.WINDOW, self._first_step + distance - _STEPS_TRACED

    def may_be_puzzled(self, now_ns: int) -> bool:
        """At the end, without a look: memory rose by less than is worth one, but by something."""
        return self._bytes.risen >= _PUZZLING_BYTES and self._budget.allows(self._price, now_ns)

    def _slowed_ns(self, began_ns: int, last_ns: int, steps: int) -> int:
        """What a window cost: its steps took so much longer than those before."""
        return max(int(began_ns - last_ns - self._pace_ns * steps), 0)

    @property
    def traced_steps(self) -> int:
        """How long a window is to be."""
        if self._is_clock:
            return _LONG_STEPS_TRACED
        return _LONG_STEPS_TRACED if self._pace_ns > _LONG_STEP_NS else _STEPS_TRACED

    @property
    def _steps_in_native_window(self) -> int:
        """How long the next one is to be."""
        nth = min(self._native_windows, len(_STEPS_IN_NATIVE_WINDOW) - 1)
        return max(_STEPS_IN_NATIVE_WINDOW[nth], _TIMES_AS_LONG * self._native_steps)

    @property
    def _price(self) -> float:
        """What a first look commits to: itself and the second."""
        return 2.5 * self._cost_ns

    def _may_go_on(self, now_ns: int) -> bool:
        if self._next in (Rung.SECOND, Rung.NATIVE_END):
            return True  # tracing costs more with every step: never leave the window open
        if self._next is Rung.NATIVE:
            is_allowed = self._budget.allows(self._native_ns, now_ns, NATIVE_CREDIT_S)
            return self._rises and (self._is_second_owed or is_allowed)
        if self._looks >= _MOST_LOOKS:
            return False
        more_credit_s = -_CREDIT_KEPT_S if self._is_well_explained else 0.0
        if not self._looks:
            more_credit_s = _FOLLOW_CREDIT_S
        return self._rises and self._budget.allows(self._cost_ns, now_ns, more_credit_s)

    def _has_come_up(self, step: int) -> bool:
        """What is kept once an epoch must have been kept twice since the first look, or else its
        holder has hardly become longer."""
        is_first_window = self._next is Rung.WINDOW and not self._looks
        has_risen = self._rises_since_first >= _FEWEST_RISES or self._bytes.is_empty
        # Small objects lie in Python's own arenas: of those malloc hears now and then.
        has_risen |= self._blocks.rises
        return not is_first_window or has_risen or step >= self._latest_step

    def _read(self, in_use: int, blocks: int, rss: int, device: int) -> None:
        if device >= 0:
            self._is_completed |= self._device.add(device)
        if in_use >= 0:
            self._is_completed |= self._bytes.add(in_use)
            self._rows += 1
            self._rises_seen += in_use > self._last_bytes
            # Two readings in a row: what a step makes and drops is gone by the next.
            height = min(in_use, self._last_bytes)
            self._last_bytes = in_use
            if self._highest is None:
                self._highest = in_use  # with what the look itself has left, 15 KiB
            elif height > self._highest + self._rise_bytes:
                self._highest = height
                self._rises_since_first += 1
        elif rss >= 0 and self._bytes.is_empty:
            self._is_completed |= self._pages.add(rss)
        if blocks >= 0:
            self._is_completed |= self._blocks.add(blocks)

    @property
    def _rises_at_most_rows(self) -> bool:
        return not self._is_clock and self._rises_seen >= _AT_MOST_ROWS * self._rows

    @property
    def _rises(self) -> bool:
        if self._device.rises:
            return True
        if self._bytes.is_empty:
            return self._pages.rises or self._blocks.rises
        return self._bytes.rises or self._blocks.rises
