"""The agent: one per process. Counts steps, takes the pulse, writes through with every block.

`leakscope run` starts it in each Python process that imports a framework, or lives for a while
without one; `with watch():` starts it in this one. It never raises and never prints in the program,
and keeps no object of the program alive. It has a thread only where nothing steps.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import time
from _thread import allocate_lock, get_ident
from collections.abc import Callable
from time import monotonic_ns, thread_time_ns
from typing import Any

from leakscope.agent.budget import LARGE_CREDIT_S
from leakscope.agent.near_limit import NearLimit
from leakscope.agent.snapshots import Snapshots
from leakscope.agent.timer import TICK_NS, Ticker
from leakscope.frameworks.arming import Arming, edge_providers
from leakscope.model import SEVERAL_STEP, Census, Gap, Mark, Moment, ProcessStart, Tally
from leakscope.observe.counters.native_heap import open_native_heap
from leakscope.observe.counters.pulse import Pulse
from leakscope.observe.counters.step_counter import StepCounter
from leakscope.observe.devices.door import Door
from leakscope.observe.guard import guarded
from leakscope.observe.piles import Piles
from leakscope.observe.processes.process_role import Childhood
from leakscope.record.format import JOB_VARIABLES, file_in_job, name_process, storable
from leakscope.record.writer import Writer

SOURCES = ("tick", "dataloader", "fetch", "forward", "call", "batch", "optimizer", "api")
"""What can count as a step, the weakest first: a stronger one takes over when it speaks."""

_COUNTED_ALWAYS = ("api", "fetch")
"""Whatever --steps-from says: the program's own word, and a worker's only kind of step."""

_RANK = {source: rank for rank, source in enumerate(SOURCES)}
_PHASES = {"optimizer": "train", "forward": "predict", "fetch": "load"}
_PATIENCE = 64
"""So many weaker events without a stronger one, and the weaker ones get rows of their own:
a long evaluation, or inference after training."""

_LONGEST_TICK_S = 0.02

_IDLE_NS = 500_000_000
"""No step for so long in a program that works: training may be over and inference have begun."""

_COLLECTIONS_TOLD = 64
_COLLECT_PAUSE = 4


class Agent:
    """Sees one process from inside."""

    def __init__(self, directory: str, *, steps_from: str = "auto", budget: float = 0.01) -> None:
        self.directory = directory
        self.steps_from = steps_from
        self._budget = budget
        self._heap = open_native_heap()
        self._pool = ""
        self._collections = 0
        self._next_told_ns = 0
        self._next_collect_ns = 0 if os.environ.get("LEAKSCOPE_COLLECT") else sys.maxsize
        self.counters = {
            source: StepCounter(source, guarded(self.record, "steps", self.gap), self._row_due_ns)
            for source in SOURCES
        }
        """How many of each source so far; always these objects, which the hooks hold."""
        self.on_idle: Callable[[], None] | None = None
        """Called when no row has been taken for a while, from a place where that costs nothing."""
        self.piles = Piles()
        """What frameworks pile up outside of Python, for the looks."""
        self._arming = Arming(self)
        self._ticker: Ticker | None = None
        self._reset(name_process(os.getpid()), "process")

    def _reset(self, process: str, kind: str) -> None:
        self.process = process
        self.kind = kind
        self.name: str | None = None
        for counter in self.counters.values():
            counter.reset()
        self._rank = -1
        self._stepping: int | None = 0
        """The thread that makes the steps; none once it was more than one."""
        self._strong_seen = self._weaker_seen = 0
        self._patience = _PATIENCE
        self._busy = allocate_lock()
        self.is_closed = False
        self._began_ns = monotonic_ns()
        self._is_ticking = False
        self._childhood = Childhood()
        self._tell_role = guarded(self._childhood.on_row, "role of a process", self.gap)
        self.learn_role = guarded(self._childhood.learn, "role of a process", self.gap)
        self.devices: dict[str, str] = {}
        """Of accelerators, those in use, as the driver names them."""
        self.writer = Writer(os.path.join(self.directory, file_in_job(process, os.environ)))

    def start(self) -> None:
        """Say who we are, and listen to the collector and to the end."""
        self.pulse = Pulse(self.process, self.writer, self._heap.read, self._budget)
        self.snapshots = Snapshots(
            self.process,
            self.writer,
            self.pulse,
            self.now,
            self._budget,
            self.piles,
            edge_providers(),
        )
        self._look = guarded(self.snapshots.on_row, "heap snapshots", self.gap)
        self.near_limit = NearLimit(self.process, self.writer, self.now, self.snapshots.take_now)
        self.near_limit.on_device = self._met_device
        self._watch_limits = guarded(self.near_limit.on_row, "memory limits", self.gap)
        self.introduce()
        if self._heap.why_not:
            what = f"bytes in use ({self._heap.allocator})"
            self.writer.append(Gap(what, self._heap.why_not, self.process))
        self.on_step = guarded(self.beat, "steps", self.gap)
        self._on_tick = guarded(self.record, "rows by the clock", self.gap)
        self.on_collection = guarded(self._note_collection, "garbage collector", self.gap)
        self._at_exit = guarded(self._end, "exit", self.gap)
        self.after_fork = guarded(self._start_in_child, "fork", self.gap)
        gc.callbacks.append(self.on_collection)
        atexit.register(self._at_exit)
        self.writer.append(Mark(self.now(), self.process, "armed"))

    def arm(self, *, is_loaded: bool = False) -> None:
        """Hook the frameworks that are there."""
        self._arming.arm(is_loaded=is_loaded)

    def introduce(self) -> None:
        """Write who this process is; again when more is known of it."""
        told = (name for name in JOB_VARIABLES if name in os.environ)
        environment = {name: storable(os.environ[name]) for name in told}
        environment |= {"allocator": self._heap.allocator, **self._childhood.group}
        environment |= self.devices
        if self._pool:
            environment["pool"] = self._pool
        self.writer.append(
            ProcessStart(
                process=self.process,
                pid=os.getpid(),
                parent_pid=os.getppid(),
                at=self.now(),
                kind=self.kind,
                name=self.name,
                python=sys.version.split(None, 1)[0],
                environment=environment,
            )
        )

    # ── events ──

    def beat(self, source: str) -> None:
        """A step, or what may be one, has been made."""
        self.counters[source].tick()

    def record(self, source: str) -> None:
        """Take a row for a step that has been counted, if its source is the one to follow."""
        if self.is_closed:
            return
        if self.steps_from not in ("auto", source) and source not in _COUNTED_ALWAYS:
            return
        if not self._may_take_row():
            return
        try:
            rank = _RANK[source]
            if rank < self._rank and not self._is_patience_over(source):
                return
            self._rank = max(rank, self._rank)
            pulse = self.pulse
            if source != pulse.source:
                self._follow(source)
            elif self._stepping != get_ident() and self._stepping is not None and source != "tick":
                self._stepping = None
                self.writer.append(Mark(self.now(), self.process, SEVERAL_STEP))
            if monotonic_ns() >= self._next_collect_ns:
                self._collect()
            step = self.counters[source].count
            pulse.take(monotonic_ns(), step, self._collections)
            taken_ns = monotonic_ns()
            self._tell_role(self)
            # Before the look: a window that it opens wants the very next steps.
            self._watch_limits(pulse.taken_ns, pulse.is_disturbed)
            self._look(source, step)
            pulse.also_took(monotonic_ns() - taken_ns)
        finally:
            self._busy.release()

    def _collect(self) -> None:
        """An experiment of `leakscope bisect`: no garbage waits at a row, and a fifth of the time
        at most is spent on that."""
        began_ns = monotonic_ns()
        gc.collect()
        ended_ns = monotonic_ns()
        self._next_collect_ns = ended_ns + _COLLECT_PAUSE * (ended_ns - began_ns)

    def _follow(self, source: str) -> None:
        """The rows are of another source from here on."""
        pulse = self.pulse
        pulse.flush()
        if pulse.source == "tick":
            # Rows are dense at first, and that is to be at the first steps, not the first ticks.
            pulse._started_ns = 0
        pulse.source = source
        if self._stepping is not None:
            self._stepping = get_ident()

    def _may_take_row(self) -> bool:
        """False while another thread of the program takes one. The clock's is waited for: it only
        wants the interpreter lock, which we have, and the first step must not be missed."""
        if self._busy.acquire(blocking=False):
            return True
        return self._is_ticking and self._busy.acquire(timeout=_LONGEST_TICK_S)

    def start_ticking(self, pause_s: float, *, after_s: float) -> None:
        """Take rows by the clock until something steps; so far apart at first."""
        if self._ticker is None and self.steps_from == "auto":
            self._ticker = Ticker(self.tick, first_s=pause_s)
            if not self._ticker.start(after_s):
                self.gap(Gap("rows by the clock", "no thread could be started"))

    def tick(self) -> bool:
        """In the ticker's thread. False: no more ticks are wanted."""
        self.learn_role(self)
        if self.is_closed or self._rank > _RANK["tick"] or self._childhood.is_of_a_loader:
            return False
        counter, pulse = self.counters["tick"], self.pulse
        counter.left = 1 - (monotonic_ns() - self._began_ns) // TICK_NS
        # Most of what a row takes here is waiting for the interpreter lock, up to 5 ms at a time;
        # taken for its price it would keep the rows of real steps away for seconds.
        pace = pulse.pace
        spent_ns, began_ns = pulse.spent_ns, thread_time_ns()
        self._is_ticking = True
        self._on_tick("tick")
        self._is_ticking = False
        if self._ticker is not None:
            self._ticker.is_urgent = pulse.is_disturbed
        pulse.pace = pace
        pulse.spent_ns = min(pulse.spent_ns, spent_ns + thread_time_ns() - began_ns)
        pulse.next_row_ns = min(pulse.next_row_ns, monotonic_ns())
        return True

    def _row_due_ns(self) -> int:
        return self.pulse.next_row_ns

    def _is_patience_over(self, weaker: str) -> bool:
        """True once a weaker source has spoken often with nothing from the stronger one."""
        strong, count = self.counters[SOURCES[self._rank]].count, self.counters[weaker].count
        if strong != self._strong_seen:
            # So many between two steps is this program's habit (accumulation, evaluation).
            self._patience = max(self._patience, 2 * (count - self._weaker_seen))
            self._strong_seen, self._weaker_seen = strong, count
        return count - self._weaker_seen > self._patience

    def row_before_first_step(self) -> None:
        """The level before the first optimizer step: its state appears within that step."""
        is_first = not self.counters["optimizer"].count
        if is_first and self.steps_from in ("auto", "optimizer") and self._may_take_row():
            try:
                self._follow("optimizer")
                self.pulse.take(monotonic_ns(), 0, self._collections)
            finally:
                self._busy.release()

    def mark(self, what: str, *, began_ns: int = 0, text: str | None = None) -> None:
        now = self.now()
        duration_ns = now.mono_ns - began_ns if began_ns else 0
        values = self.pulse.counters()
        self.writer.append(Mark(now, self.process, what, duration_ns, values, text))

    def census(self, probe: str, tallies: tuple[Tally, ...]) -> None:
        self.writer.append(Census(self.now(), self.process, probe, tallies))

    def gap(self, gap: Gap) -> None:
        self.writer.append(Gap(gap.what, gap.why, gap.process or self.process))

    def became(self, kind: str, name: str) -> None:
        if (kind, name) != (self.kind, self.name):
            self.kind, self.name = kind, name
            if kind == "worker":
                self.pulse.share_cores()
            self.introduce()

    def met_pool(self, name: str) -> None:
        """A library takes large regions from malloc and hands them out itself."""
        if not self.pulse.has_pool:
            self.pulse.has_pool = True
            self._pool = name
            self.introduce()

    def met_large_heap(self) -> None:
        """A library brings so many objects that a look at them takes longer."""
        self.snapshots.budget.credit_s = LARGE_CREDIT_S

    def met_dataset(self, dataset: Any) -> None:
        self.snapshots.note_preloaded(dataset)

    def met_devices(self, door: Door) -> None:
        """A framework with devices is there; whether the program uses one is seen at the rows."""
        self.pulse.watch_devices(door)
        self.snapshots.door = door
        if self.pulse.devices is not None:
            self.near_limit.watch_devices(door, self.pulse.devices)

    def _met_device(self, device: str, named: str) -> None:
        self.devices[device] = storable(named)
        self.introduce()

    def now(self) -> Moment:
        step = self.counters[SOURCES[self._rank]].count if self._rank >= 0 else None
        return Moment(time.time_ns(), monotonic_ns(), step, self._phase())

    def _phase(self) -> str | None:
        """What the program does, as far as the last row tells it."""
        source = self.pulse.source if hasattr(self, "pulse") else ""
        if source == "forward" and self.counters["optimizer"].count:
            return "evaluate"
        return _PHASES.get(source)

    def _end(self) -> None:
        """The program is done, and we are called last: see what gives memory back, and close."""
        if not self.is_closed:
            # What we import for it is not the program's, nor is what memory does meanwhile.
            if self._ticker is not None:
                self._ticker.stop()
            guarded(self.snapshots.finish, "native windows", self.gap)()
            guarded(self.snapshots.try_remedies, "remedies", self.gap)()
        self.close()

    def close(self) -> None:
        """Write what is left. Later events are counted but not recorded."""
        if not self.is_closed:
            self.is_closed = True
            if self._ticker is not None:
                self._ticker.stop()
            self.snapshots.abandon()
            self.near_limit.close()
            guarded(self.snapshots.tell_imports, "imports", self.gap)()
            guarded(self.snapshots.take_censuses, "counts of frameworks", self.gap)()
            guarded(self.snapshots.tell_piles, "counts of frameworks", self.gap)()
            self.pulse.flush()
            self.pulse.next_row_ns = sys.maxsize
            # The last steps may have no row; their number is the number of steps all the same.
            source = SOURCES[self._rank] if self._rank >= 0 else None
            self.writer.append(Mark(self.now(), self.process, "end", text=source))
            self.writer.close()

    def stop(self) -> None:
        """Close, and leave no hook and no callback behind."""
        self._arming.disarm()
        self.piles.withdraw()
        self.close()
        if self.on_collection in gc.callbacks:
            gc.callbacks.remove(self.on_collection)
        atexit.unregister(self._at_exit)

    def _note_collection(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start" or self.is_closed:
            return
        # A framework may have come after us; where one is here already, another is rare.
        if info["generation"] or not self._arming.has_armed:
            self.arm()
        if self.on_idle is not None and monotonic_ns() > self.pulse.next_row_ns + _IDLE_NS:
            self.on_idle()
        if info["generation"] == 2:
            self._collections += 1
            if self._collections > _COLLECTIONS_TOLD and monotonic_ns() < self._next_told_ns:
                return  # a program that collects at every step must not fill the disk with it
            self._next_told_ns = monotonic_ns() + _IDLE_NS
            values = self.pulse.counters()
            values["collected_count"] = info["collected"]
            self.writer.append(Mark(self.now(), self.process, "collection", 0, values))

    def _start_in_child(self) -> None:
        """Runs in a forked child: a file of its own, and nothing of the parent's."""
        if self.is_closed:
            return
        self.writer.close()
        self._reset(name_process(os.getpid()), "child")
        self.pulse.after_fork(self.process, self.writer)
        self.snapshots.after_fork(self.process, self.writer)
        self.near_limit.reset(self.process, self.writer)
        self.introduce()
