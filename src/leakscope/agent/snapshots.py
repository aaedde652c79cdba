"""The heap snapshots of one process: taken at a row, if the schedule says so, written at once."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic_ns, thread_time_ns
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from leakscope.agent.budget import Budget
from leakscope.agent.importing import Importing, has_pooling_framework
from leakscope.agent.main_thread import MainThreadCall, is_main_thread
from leakscope.agent.native_windows import NativeWindows
from leakscope.agent.near_limit import TakenNow
from leakscope.agent.schedule import Action, Schedule
from leakscope.agent.timer import TICK_NS
from leakscope.model import (
    DEVICE_TOOL,
    IMPORTING,
    LOOKS,
    REMEDY,
    USUAL_BLOCK_BYTES,
    Census,
    Gap,
    Holding,
    Mark,
    Moment,
    Snapshot,
    Source,
    Window,
)
from leakscope.observe.counters.pulse import Pulse
from leakscope.observe.guard import guarded
from leakscope.observe.heap.edges import EdgeProvider
from leakscope.observe.piles import Piles, PileWatch
from leakscope.record.format import storable
from leakscope.record.snapshot_file import FOLDER
from leakscope.record.writer import Writer

if TYPE_CHECKING:
    from leakscope.observe.allocations.device_lines import DeviceWindow
    from leakscope.observe.allocations.python_lines import SiteWindow
    from leakscope.observe.devices.door import Door

_SOON_NS = 500_000
"""When the next row is due while a window is open: at the next step, whatever the pace."""

_CLOCK = "tick"
_MUCH_HELD_BYTES = 32 << 20
"""Allocator cache from which it is worth asking at the end whether it can be given back."""
_PUZZLING_BYTES = 1 << 20
"""Rise of live memory that no snapshot explains and that is worth a reclaim test at the end."""
_ENOUGH_VISIBLE = 0.5
"""Share of the growth that snapshots must see, or reclaim tests are tried at the end."""
_PATIENCE_NS = 500_000_000
"""How long to wait for the main thread to take a snapshot itself."""
_FOLLOWED = "a debugger, coverage or a profiler follows the main thread line by line"
_START_UP_PAUSE_NS = 1_000_000_000
_main_thread = MainThreadCall()


class Snapshots:
    """All snapshots of one process, paid from one budget."""

    def __init__(
        self,
        process: str,
        writer: Writer,
        pulse: Pulse,
        now: Callable[[], Moment],
        share: float,
        piles: Piles,
        providers: Sequence[EdgeProvider],
    ) -> None:
        self._piles = piles
        self._watch = PileWatch(piles)
        self._providers = providers
        self._step = 0
        self._process = process
        self._writer = writer
        self._pulse = pulse
        self._now = now
        self.budget = Budget(share)
        self._source = ""
        self._native = NativeWindows()
        self._sites: SiteWindow | None = None
        self._device_sites: DeviceWindow | None = None
        self._importing = Importing()
        self._started_up_ns = 0
        self._has_told_sources = self._has_stepped = self._has_told_tracing = False
        self.door: Door | None = None
        """To the devices, once the framework that has them is there."""
        self._main_thread = _main_thread
        self._number = 0
        self._visible = 1.0
        self._reset()

    def _reset(self) -> None:
        self._schedule = Schedule(
            self.budget, is_clock=self._source == _CLOCK, is_pooled=has_pooling_framework()
        )
        self._watch.forget()
        self._first: dict[str, int] = {}

    def on_row(self, source: str, step: int) -> None:
        """Called after every row; nearly always there is nothing to do."""
        if source == self._source and self._main_thread.is_outstanding:
            self._lose_patience()
            return
        # Functions that are compiled for the first time are no leak either.
        is_importing = source == _CLOCK and self._importing.goes_on(self._piles.novelty())
        if is_importing:
            self._note_start_up()
        if source == _CLOCK and not self._importing.is_loading:
            self.tell_imports()
        if is_importing and self._schedule.snapshots:
            is_importing = False  # a program that imports while it works is looked at all the same
        if source != self._source or is_importing:
            if self._source == _CLOCK and source != _CLOCK and not self._has_stepped:
                self._has_stepped = True
                self.budget.begin_anew()
            self._source = source
            self.abandon()
            self._reset()
            return
        self._watch.begin(step)
        self._step = step
        pulse = self._pulse
        action = self._schedule.due(
            pulse.taken_ns,
            step,
            pulse.in_use_bytes,
            pulse.blocks_count,
            pulse.rss_bytes,
            pulse.devices.allocated_bytes if pulse.devices is not None else -1,
        )
        if action is None and not self._schedule.is_tracing:
            return
        if source == _CLOCK and not is_main_thread():
            act = guarded(partial(self._act, action, step), "heap snapshots", self._gap)
            self._main_thread.send(act)
            if self._main_thread.is_followed and not self._has_told_tracing:
                self._has_told_tracing = True
                self._gap(Gap("heap snapshots", _FOLLOWED))
        else:
            self._act(action, step)

    def _gap(self, gap: Gap) -> None:
        self._writer.append(Gap(gap.what, gap.why, self._process))

    def _lose_patience(self) -> None:
        """The main thread waits for something and does not come: then this thread does it."""
        if self._main_thread.waited_ns() > _PATIENCE_NS and (call := self._main_thread.take_back()):
            call()

    def _act(self, action: Action | None, step: int) -> None:
        try:
            if action is not None:
                self._do(action, step)
            elif self._schedule.is_tracing:
                if self._device_sites is not None:
                    self._device_sites.at_step(step)
                self._pulse.next_row_ns = monotonic_ns() + _SOON_NS
        except BaseException:
            self.abandon()
            self._pulse.is_disturbed = False
            self._reset()
            raise

    def _do(self, action: Action, step: int) -> None:
        began_ns, began_cpu_ns = monotonic_ns(), thread_time_ns()
        before = self._pulse.counters()
        # Another thread may take rows meanwhile: what lies in the heap now is ours too.
        self._pulse.is_disturbed = True
        once_ns = 0
        if action in (Action.SNAPSHOT, Action.ACCOUNT):
            why = "growth" if action is Action.SNAPSHOT else "account"
            self._take(why, step, before)
        elif action is Action.WINDOW:
            self._open_window(step)
        elif action is Action.NATIVE:
            once_ns = self._native.open(step, self._writer)
            if self._source == _CLOCK:
                self._native.begin_at(step + (monotonic_ns() - began_ns) // TICK_NS)
        else:
            self._close_native(step)
        ended_ns = monotonic_ns()
        self._schedule.done(
            action,
            began_ns,
            ended_ns,
            step,
            cpu_ns=thread_time_ns() - began_cpu_ns,
            once_ns=once_ns,
            visible=self._visible,
        )
        self._mark(action, before, ended_ns - began_ns, step)
        self.take_censuses()
        self._importing.note(self._piles.novelty())  # ours, memray's
        self._pulse.is_disturbed = self._schedule.is_tracing or self._native.is_open
        if not self._pulse.is_disturbed:
            self._take_off(before)
        if action in (Action.WINDOW, Action.NATIVE):
            self._pulse.next_row_ns = monotonic_ns() + _SOON_NS

    def _take_off(self, before: dict[str, int]) -> None:
        """What a look leaves behind (modules, freed memory that stays with the thread) is no growth
        of the program: the counters of later rows are without it."""
        after = self._pulse.counters()
        left = after.get("in_use_bytes", 0) - before.get("in_use_bytes", 0)
        blocks = after["blocks_count"] - before["blocks_count"]
        self._pulse.own_bytes += max(left, 0)
        self._pulse.own_blocks += max(blocks, 0)

    def take_now(self, why: str) -> TakenNow:
        """Take a snapshot outside the schedule, as memory runs out."""
        return self._take(why, self._step, self._pulse.counters())

    def _take(self, why: str, step: int, before: dict[str, int]) -> TakenNow:
        """Take a snapshot and write its header."""
        from leakscope.observe.heap import snapshot

        self._number += 1
        name = f"{self._process}-{self._number}.heap"
        path = os.path.join(os.path.dirname(self._writer.path), FOLDER, name)
        is_traced = self._sites is not None and self._sites.is_open
        if is_traced and self._sites is not None:
            self._sites.pause()
        at = replace(self._now(), step=step)
        moment = snapshot.Moment(self._process, self._number, step, self._source)
        try:
            taken = snapshot.take_snapshot(path, moment, self._providers, with_sites=is_traced)
        except OSError as error:
            self._gap(Gap("heap snapshot", f"it could not be written: {error.strerror}"))
            return TakenNow("")
        finally:
            self._close_window(step)
        for what, why_not in taken.skipped.items():
            self._gap(Gap(f"{what} in heap snapshot {self._number}", why_not))
        self._writer.append(
            Snapshot(
                at,
                self._process,
                self._number,
                why,
                self._source,
                f"{FOLDER}/{name}",
                taken.objects,
                taken.edges,
                taken.visible_bytes,
                before | {"gc_enabled": int(gc.isenabled()), "frozen_count": gc.get_freeze_count()},
                taken.spent_ns,
                is_traced,
                tuple(taken.skipped),
            )
        )
        if snapshot.WALKER == "python" and self._number == 1:
            self._gap(Gap("heap snapshots in C", "the extension is not installed"))
        if why != "account":
            self.tell_sources()
        if why == "growth":
            self._note_visible(before, taken)
        return TakenNow(f"{FOLDER}/{name}", taken.device_addresses)

    def _note_visible(self, before: dict[str, int], taken: Any) -> None:
        """How much of what the counters grew by since the first snapshot is in the snapshots."""
        seen = {"visible": taken.visible_bytes, "devices": taken.device_bytes}
        if not self._first:
            self._first = {**before, **seen}
            return
        in_use = before.get("in_use_bytes", 0) - self._first.get("in_use_bytes", 0)
        blocks = before.get("blocks_count", 0) - self._first.get("blocks_count", 0)
        if self._pulse.has_pool:
            blocks = 0  # in what is in use already
        grown = max(in_use + blocks * USUAL_BLOCK_BYTES, 0.0)
        # What grows on a device is no native memory of the host: memray would see none of it.
        on_devices = sum(before[name] - self._first.get(name, 0) for name in before if ":" in name)
        seen_here = taken.visible_bytes - self._first["visible"] + max(on_devices, 0)
        self._visible = seen_here / max(grown + max(on_devices, 0), 1.0)

    def _open_window(self, step: int) -> None:
        from leakscope.observe.allocations.device_lines import DeviceWindow
        from leakscope.observe.allocations.python_lines import SiteWindow

        if self._sites is None:
            self._sites = SiteWindow()
            self._device_sites = DeviceWindow(self.door)
        if self._device_sites is not None:
            self._device_sites.open(step, self._schedule.traced_steps)
        self._sites.open()

    def _close_window(self, step: int) -> None:
        if self._sites is not None:
            self._sites.close()
        if self._device_sites is not None and self._schedule.is_tracing:
            snapshot = self._device_sites.close(step)
            if snapshot is not None and (kept := self._device_sites.survivors(snapshot.blocks)):
                steps = self._device_sites.steps
                window = Window(self._now(), self._process, DEVICE_TOOL, steps, kept)
                self._writer.append(window)

    def _close_native(self, step: int) -> None:
        window = self._native.close(step, self._now(), self._process)
        if window is not None:
            self._writer.append(window)
            self.tell_sources()

    def finish(self) -> None:
        """At the end of the program: a native window that is open still has seen its last steps."""
        if self._native.is_open:
            self._close_native(self._now().step or self._step)

    def _note_start_up(self) -> None:
        """TensorFlow takes seconds to import, some of them without a module that is new: the clock
        of the run begins when there has been none for a while."""
        now_ns = monotonic_ns()
        is_first = self._started_up_ns == 0
        if has_pooling_framework() and (
            is_first or now_ns - self._started_up_ns < _START_UP_PAUSE_NS
        ):
            self._started_up_ns = now_ns
            self._writer.append(Mark(self._now(), self._process, "imported"))

    def tell_imports(self) -> None:
        """Write down a stretch of imports: the clock of the run stands still for it."""
        if (stretch := self._importing.take_stretch()) is not None:
            began_ns, ended_ns = stretch
            now = self._now()
            passed_ns = now.mono_ns - ended_ns
            ended = replace(now, wall_ns=now.wall_ns - passed_ns, mono_ns=ended_ns)
            self._writer.append(Mark(ended, self._process, IMPORTING, ended_ns - began_ns))

    def abandon(self) -> None:
        """Leave nothing on: the steps are counted differently now, or this is the end."""
        self._main_thread.cancel()
        if self._sites is not None:
            self._sites.close()
        if self._device_sites is not None:
            self._device_sites.abandon()
        self._native.abandon()
        self._pulse.is_disturbed = False

    def after_fork(self, process: str, writer: Writer) -> None:
        """In a forked child: its own file, its own budget, nothing of the parent's."""
        self._process, self._writer = process, writer
        self._main_thread.forget()
        self.abandon()
        credit_s = self.budget.credit_s
        self.budget = Budget(self.budget.share)
        self.budget.credit_s = credit_s
        self._has_told_sources = self._has_stepped = False
        self._importing = Importing()
        self._number = 0
        self._reset()

    def note_preloaded(self, dataset: Any) -> None:
        """In a worker: what Python objects the data set brought along."""
        from leakscope.observe.preloaded import find_preloaded

        found = find_preloaded(dataset)
        if found is not None:
            self._writer.append(
                Holding(
                    at=self._now(),
                    process=self._process,
                    kind="shared-pages",
                    path=found.links,
                    grows_at=len(found.links) - 1,
                    item=found.item,
                    counts=((0, found.objects),),
                )
            )
            self.tell_sources()

    def tell_piles(self) -> None:
        """At the end: what frameworks keep outside of Python, as they count it themselves."""
        piles = self._watch.grown(self._step, self._process, self._now())
        for holding in piles:
            self._writer.append(holding)
        if piles:
            self.tell_sources()

    def take_censuses(self) -> None:
        """What the frameworks count themselves: at each snapshot, and at the end."""
        for probe, tallies in self._piles.censuses():
            if tallies:
                self._writer.append(Census(self._now(), self._process, probe, tallies))

    def _mark(self, action: Action, before: dict[str, int], duration_ns: int, step: int) -> None:
        values = dict(before)
        values["longest_ns"] = self.budget.longest_ns
        values["spent_ns"] = self.budget.spent_ns
        # The step at which it began: by the clock, others have passed since.
        moment = replace(self._now(), step=step)
        mark = Mark(
            moment, self._process, LOOKS[0], duration_ns, values, action.value, self._source
        )
        self._writer.append(mark)

    def tell_sources(self) -> None:
        if self._has_told_sources:
            return
        self._has_told_sources = True
        from leakscope.observe.sources import program_files

        for file, text in program_files():
            self._writer.append(Source(self._process, storable(file), storable(text)))

    def try_remedies(self) -> None:
        """At the end: what gives back memory that no snapshot explains?"""
        if self._schedule.snapshots > 1:
            is_puzzled = self._visible < _ENOUGH_VISIBLE
        else:
            is_puzzled = self._schedule.risen_bytes >= _PUZZLING_BYTES
        is_much_held = self._pulse.counters().get("held_bytes", 0) >= _MUCH_HELD_BYTES
        if not is_puzzled and not is_much_held:
            return
        from leakscope.observe.remedies import try_remedies

        self.abandon()
        counters = self._pulse.counters
        for one in try_remedies(counters, is_puzzled=is_puzzled, is_much_held=is_much_held):
            values = {f"{name} before": value for name, value in one.before.items()}
            values |= {f"{name} after": value for name, value in one.after.items()}
            mark = Mark(self._now(), self._process, REMEDY, one.took_ns, values, one.name)
            self._writer.append(mark)
