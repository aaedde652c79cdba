"""When to take heap snapshots. Cheap and generous: it never judges.

    watching ── a counter's floor rises ───────▶ snapshot 1
    then     ── some steps later, still rising ▶ snapshot 2
    then     ── as many steps again ───────────▶ tracing window, and snapshot 3 at its end
    then     ── at doublings of the distance ──▶ the same, while memory still grows
    any time ── snapshots do not see the growth ▶ native windows

A program that does not grow is looked at once, when its run time has paid for it.
"""

from __future__ import annotations

from enum import Enum

from leakscope.agent.budget import Budget
from leakscope.agent.timer import TICK_NS
from leakscope.agent.trend import READINGS_A_FLOOR, Trend

_ENOUGH_BYTES = 48 << 10
"""Rise of live memory that is worth a snapshot. Steady training moves by less than 8 KiB."""
_ENOUGH_BLOCKS = 2_500
"""The same for small Python objects. Steady training moves by up to 2,000 (freed tuples)."""
_ENOUGH_PAGES = 4 << 20
"""The same for RSS, which decides only where malloc's own counters cannot be read."""
_POOLED_TIMES = 85
"""How much more a framework with memory pools of its own (TensorFlow, JAX) moves when steady."""

_STEPS_BETWEEN = 24
"""Steps between two snapshots at least: enough to tell what is kept from what is in flight."""
_TICKS_BETWEEN = 7
"""The same without steps, in ticks of 10 ms."""
_TRACED_STEPS, _TRACED_LONG_STEPS = 4, 2
"""Steps of a tracing window; fewer where a step is long, because tracing makes it longer."""
_LONG_STEP_NS = 50_000_000
_FEWEST_RISES = 2
"""New heights of memory between two snapshots, so that a holder has more in each of them."""
_PATIENCE = 4
"""Times the usual distance to wait for those heights."""

_NS_PER_BLOCK = 150.0
"""Pause of a snapshot per small Python object, before the first has been measured."""
_ENOUGH_VISIBLE = 0.5
"""Share of the growth that snapshots must see; below it, native memory is traced."""
_NATIVE_STEPS = (3, 9)
"""Steps of the two native windows: what is in flight is the same in both, what is kept is not."""
_NATIVE_NS = 120_000_000.0
"""Cost of the first native window, before it has been measured: memray's import among it."""
_NATIVE_CREDIT_S = 40.0
"""Allowance for native windows, which come only if nothing else has explained the growth."""
_SNAPSHOTS_OWED = 3
"""With fewer, growth by path says nothing: these are owed to every program that grows."""
_MOST_SNAPSHOTS = 12


class Action(Enum):
    """What is to be done at a row."""

    SNAPSHOT = "snapshot"
    WINDOW = "tracing window"
    NATIVE = "native window"
    NATIVE_END = "end of the native window"
    ACCOUNT = "account"


class Schedule:
    """Says at a row what, if anything, is to be done now."""

    def __init__(self, budget: Budget, *, is_clock: bool = False, is_pooled: bool = False) -> None:
        """`is_pooled`: beside a framework with memory pools and a large heap of its own."""
        self._budget = budget
        self._is_clock = is_clock
        times = _POOLED_TIMES if is_pooled else 1
        floor = (2 if is_clock else 3) if is_pooled else (1 if is_clock else READINGS_A_FLOOR)
        self._bytes = Trend(_ENOUGH_BYTES * times, floor, has_jumps=is_pooled)
        self._blocks = Trend(_ENOUGH_BLOCKS * times, min(floor, 3), has_jumps=is_pooled)
        self._pages = Trend(_ENOUGH_PAGES, floor)
        self._device = Trend(_ENOUGH_BYTES, floor)
        self._between = _TICKS_BETWEEN if is_clock else _STEPS_BETWEEN
        self._first_step = self._last_step = self._at_step = self._latest_step = 0
        self._last_ns = 0
        self._pace_ns = 0.0
        self._highest: int | None = None
        self._last_bytes = 0
        self._rises = 0
        self._is_completed = False
        self._blocks_count = 0
        self._cost_ns = 0.0
        self._native_ns = _NATIVE_NS
        self._native_windows = self._native_steps = 0
        self._is_unexplained = False
        self._next = Action.SNAPSHOT
        self.snapshots = 0
        """Taken because memory grew."""
        self.is_tracing = False
        """A tracing window is open, and the next snapshot closes it."""
        self._has_account = False

    def due(
        self, now_ns: int, step: int, in_use: int, blocks: int, rss: int, device: int = -1
    ) -> Action | None:
        """What to do at this row. Values below zero were not read."""
        self._read(in_use, blocks, rss, device)
        is_completed, self._is_completed = self._is_completed, False
        if self._next is Action.NATIVE_END or (self._next is Action.SNAPSHOT and self.is_tracing):
            return self._next if step >= self._at_step else None  # never leave a window open
        if self.snapshots == 0:
            if is_completed and self.grows and self._budget.owes(self.price_ns, now_ns):
                return Action.SNAPSHOT
            return self._account_due(now_ns)
        if not self.grows or step < self._at_step or not self._may_go_on(now_ns):
            return None
        return self._next if self._has_come_up(step) else None

    def _account_due(self, now_ns: int) -> Action | None:
        """One look at a program that does not grow, paid for by its run time and no allowance."""
        if self._has_account or not self._blocks_count:
            return None
        is_earned = self._budget.allows(self.price_ns, now_ns, -self._budget.credit_s)
        return Action.ACCOUNT if is_earned else None

    def done(
        self,
        action: Action,
        began_ns: int,
        ended_ns: int,
        step: int,
        *,
        cpu_ns: int,
        once_ns: int = 0,
        visible: float = 1.0,
    ) -> None:
        """Pay for it, and plan the next. `visible`: share of the growth since the first snapshot
        that snapshots see; `once_ns` of the cost will not come again."""
        cost_ns = min(cpu_ns, ended_ns - began_ns)
        last_ns, last_step = self._last_ns, self._last_step
        # Without steps the program goes on only when the look is over.
        goes_on = step + (ended_ns - began_ns) // TICK_NS if self._is_clock else step
        if action is Action.ACCOUNT:
            self._has_account = True
            self._cost_ns = max(cost_ns, 1)
        elif action is Action.WINDOW:
            self._pace_ns = (began_ns - last_ns) / max(step - last_step, 1)
            self.is_tracing = True
            self._next, self._at_step = Action.SNAPSHOT, goes_on + self.traced_steps
            self._last_ns, self._last_step = ended_ns, step
        elif action is Action.SNAPSHOT:
            self._cost_ns = max(cost_ns, 1)
            if self.is_tracing:
                self.is_tracing = False
                cost_ns += self._slowed_ns(began_ns, last_ns, step - last_step)
            self.snapshots += 1
            self._has_account = True
            self._last_ns, self._last_step = ended_ns, step
            self._is_unexplained = self.snapshots > 1 and visible < _ENOUGH_VISIBLE
            self._plan(step, goes_on)
        elif action is Action.NATIVE:
            self._native_ns = max(float(cost_ns - once_ns), 0.0)
            self._last_ns, self._last_step = ended_ns, step
            steps = _NATIVE_STEPS[min(self._native_windows, len(_NATIVE_STEPS) - 1)]
            steps = max(steps, 2 * self._native_steps)
            self._next, self._at_step = Action.NATIVE_END, goes_on + steps
        else:
            self._native_windows += 1
            self._native_steps = step - last_step
            cost_ns += self._slowed_ns(began_ns, last_ns, self._native_steps)
            self._native_ns += cost_ns
            self._plan(step, goes_on)
        self._budget.pay(cost_ns, ended_ns - began_ns)

    def _plan(self, step: int, goes_on: int) -> None:
        """Say what comes next, and when."""
        self._highest, self._rises = None, 0
        if self._is_unexplained and self._native_windows < len(_NATIVE_STEPS):
            self._next, self._at_step, self._latest_step = Action.NATIVE, goes_on + 1, 0
            return
        if self.snapshots == 1:
            self._first_step = step
        distance = max(step - self._first_step, self._between)
        is_traced = self.snapshots >= _SNAPSHOTS_OWED - 1
        self._next = Action.WINDOW if is_traced else Action.SNAPSHOT
        before = self.traced_steps if is_traced else 0
        self._at_step = max(goes_on + self._between, step + distance) - before
        self._latest_step = self._at_step + (_PATIENCE - 1) * distance

    @property
    def price_ns(self) -> float:
        """What a snapshot costs: as the last did, or by the size of the heap."""
        return self._cost_ns or _NS_PER_BLOCK * max(self._blocks_count, 1)

    def _may_go_on(self, now_ns: int) -> bool:
        if self._next is Action.NATIVE:
            is_allowed = self._budget.allows(self._native_ns, now_ns, _NATIVE_CREDIT_S)
            return is_allowed or self._native_windows > 0
        if self.snapshots >= _MOST_SNAPSHOTS:
            return False
        if self.snapshots < _SNAPSHOTS_OWED:
            return self._budget.owes(self.price_ns, now_ns)
        return self._budget.allows(self.price_ns, now_ns, -self._budget.credit_s / 2)

    def _has_come_up(self, step: int) -> bool:
        """Has memory risen often enough since the last snapshot for a holder to have more?"""
        if self._next is Action.NATIVE or self._bytes.is_empty:
            return True
        # Small objects lie in Python's own arenas: malloc hears of those now and then.
        return self._rises >= _FEWEST_RISES or self._blocks.rises or step >= self._latest_step

    def _slowed_ns(self, began_ns: int, last_ns: int, steps: int) -> int:
        """How much longer the steps of a window took than those before."""
        return max(int(began_ns - last_ns - self._pace_ns * steps), 0)

    @property
    def traced_steps(self) -> int:
        """How long a tracing window is to be."""
        if self._is_clock or self._pace_ns > _LONG_STEP_NS:
            return _TRACED_LONG_STEPS
        return _TRACED_STEPS

    @property
    def risen_bytes(self) -> int:
        """By how much live memory has risen since half of the run, by its floors."""
        return self._bytes.risen

    def _read(self, in_use: int, blocks: int, rss: int, device: int) -> None:
        if device >= 0:
            self._is_completed |= self._device.add(device)
        if in_use >= 0:
            self._is_completed |= self._bytes.add(in_use)
            # Two readings in a row: what a step makes and drops is gone by the next.
            height = min(in_use, self._last_bytes)
            self._last_bytes = in_use
            enough = max(_ENOUGH_BYTES // 12, self._bytes.risen // 64)
            if self._highest is None:
                self._highest = in_use
            elif height > self._highest + enough:
                self._highest = height
                self._rises += 1
        elif rss >= 0 and self._bytes.is_empty:
            self._is_completed |= self._pages.add(rss)
        if blocks >= 0:
            self._blocks_count = blocks
            self._is_completed |= self._blocks.add(blocks)

    @property
    def grows(self) -> bool:
        """Does a counter rise, as far as a cheap look at its floors tells?"""
        if self._device.rises or self._blocks.rises:
            return True
        return self._pages.rises if self._bytes.is_empty else self._bytes.rises
