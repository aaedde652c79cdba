"""Looking closer, as an agent does it: at a row, if the ladder says so, written down at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic_ns, thread_time_ns
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from leakscope.model import (
    COUNTED,
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
    Source,
    Window,
)
from leakscope.observe import foreign
from leakscope.observe.budget import Budget
from leakscope.observe.errand import Errand, is_main_thread
from leakscope.observe.guard import guarded
from leakscope.observe.importing import Importing
from leakscope.observe.ladder import Ladder, Rung
from leakscope.observe.leftovers import Leftovers
from leakscope.observe.native_rung import NativeRung
from leakscope.observe.piles import Piles, PileWatch
from leakscope.observe.pulse import Pulse
from leakscope.record.format import storable
from leakscope.record.writer import Writer

if TYPE_CHECKING:
    from leakscope.observe.devices import Door
    from leakscope.observe.inquiry import Inquiry
    from leakscope.observe.recount import Recount

_SOON_NS = 500_000
"""When the next row is due while a window is open: at the next step, whatever the pace."""

_CLOCK = "tick"
_ENOUGH_EXPLAINED = 0.5
_MUCH_HELD_BYTES = 32 << 20
"""Held free by the allocator: from here on it is worth asking at the end whether it could have
given it back. Giving back 200 MiB took 42 ms (glibc 2.36)."""


_PATIENCE_NS = 500_000_000
_START_UP_PAUSE_NS = 1_000_000_000
_errand = Errand()


class Looks:
    """All looks of one process, paid from one budget."""

    def __init__(
        self,
        process: str,
        writer: Writer,
        pulse: Pulse,
        now: Callable[[], Moment],
        share: float,
        piles: Piles,
    ) -> None:
        self._piles = piles
        self._watch = PileWatch(piles)
        self._step = 0
        self._process = process
        self._writer = writer
        self._pulse = pulse
        self._now = now
        self.budget = Budget(share)
        self._source = ""
        self._inquiry: Inquiry | None = None
        self._native = NativeRung()
        self._importing = Importing()
        self._started_up_ns = 0
        self._leftovers = Leftovers(pulse)
        self._has_told_sources = self._has_stepped = False
        self._grown_on_devices = 0.0
        self.door: Door | None = None
        """To the devices, once the framework that has them is there."""
        self._errand = _errand
        self._recount: Recount | None = None
        self._reset()

    def _reset(self) -> None:
        self._ladder = Ladder(
            self.budget, is_clock=self._source == _CLOCK, is_foreign=foreign.is_present()
        )
        self._watch.forget()
        self._recount = None
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}

    def on_row(self, source: str, step: int) -> None:
        """Called after every row; nearly always there is nothing to do."""
        if source == self._source and self._errand.is_outstanding:
            self._lose_patience()
            return
        # Functions that are compiled for the first time are no leak either.
        is_importing = source == _CLOCK and self._importing.goes_on(self._piles.novelty())
        if is_importing:
            self._note_start_up()
        if source == _CLOCK and not self._importing.is_loading:
            self.tell_imports()
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
        rung = self._ladder.due(
            pulse.taken_ns,
            step,
            pulse.in_use_bytes,
            pulse.blocks_count,
            pulse.rss_bytes,
            pulse.devices.allocated_bytes if pulse.devices is not None else -1,
        )
        is_tracing = self._inquiry is not None and self._inquiry.is_tracing
        if rung is None and not is_tracing:
            if self._recount is not None and self._recount.is_due(step) and source != _CLOCK:
                self._count_again(self._recount, step)
            return
        if source == _CLOCK and not is_main_thread():
            self._errand.send(guarded(partial(self._act, rung, step), "attribution", self._gap))
        else:
            self._act(rung, step)

    def _gap(self, gap: Gap) -> None:
        self._writer.append(Gap(gap.what, gap.why, self._process))

    def _lose_patience(self) -> None:
        """The main thread waits for something and does not come: then it is our own errand."""
        if self._errand.waited_ns() > _PATIENCE_NS and (call := self._errand.take_back()):
            call()

    def _act(self, rung: Rung | None, step: int) -> None:
        try:
            if rung is not None:
                self._climb(rung, step)
            elif self._inquiry is not None and self._inquiry.is_tracing:
                self._inquiry.in_window(step)
                self._pulse.next_row_ns = monotonic_ns() + _SOON_NS
        except BaseException:
            self.abandon()
            self._pulse.is_disturbed = False
            self._reset()
            raise

    def _note_start_up(self) -> None:
        """TensorFlow takes seconds to import, some of them without a module that is new: the clock
        of the run begins when there has been none for a while."""
        now_ns = monotonic_ns()
        is_first = self._started_up_ns == 0
        if foreign.is_present() and (is_first or now_ns - self._started_up_ns < _START_UP_PAUSE_NS):
            self._started_up_ns = now_ns
            self._writer.append(Mark(self._now(), self._process, "imported"))

    def tell_imports(self) -> None:
        """The clock of the run stands still while modules are loaded: AdamW's first use imports
        torch's compiler for a second and a half, and a program that failed right after it was
        called growing."""
        if (stretch := self._importing.take_stretch()) is not None:
            began_ns, ended_ns = stretch
            now = self._now()
            passed_ns = now.mono_ns - ended_ns
            ended = replace(now, wall_ns=now.wall_ns - passed_ns, mono_ns=ended_ns)
            self._writer.append(Mark(ended, self._process, IMPORTING, ended_ns - began_ns))

    def abandon(self) -> None:
        """Leave nothing on: the steps are counted differently now, or this is the end."""
        self._errand.cancel()
        if self._inquiry is not None:
            self._inquiry.abandon()
            self._inquiry = None
            self._native.abandon()
            self._pulse.is_disturbed = False
            self._pulse.own_bytes = self._leftovers.bytes

    def after_fork(self, process: str, writer: Writer) -> None:
        self._process, self._writer = process, writer
        self._errand.forget()
        self.abandon()
        credit_s = self.budget.credit_s
        self.budget = Budget(self.budget.share)
        self.budget.credit_s = credit_s
        self._has_told_sources = self._has_stepped = False
        self._importing = Importing()
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

    def _climb(self, rung: Rung, step: int) -> None:
        began_ns, began_cpu_ns = monotonic_ns(), thread_time_ns()
        before = self._pulse.counters()
        # By the clock another thread takes rows meanwhile: what lies in the heap now is ours too.
        # The import of memray, 1.6 MiB, was a program's growth (zoo/cycles-in-plain-python).
        self._pulse.is_disturbed = True
        inquiry = self._inquire()
        noted_bytes = inquiry.own_bytes
        once_ns = 0
        if rung is Rung.FIRST:
            self._first = self._last = before
            inquiry.first_look(step)
        elif rung is Rung.WINDOW:
            self._last = before
            inquiry.open_window(step, self._ladder.traced_steps)
        elif rung is Rung.SECOND:
            self._write(inquiry, step)
            self._first = self._last  # the lengths at the opening are what the next compares with
        elif rung is Rung.NATIVE:
            self._last = before
            noted_anew = partial(self._note_anew, before)
            once_ns = self._native.open(inquiry, step, self._writer, noted_anew)
        else:
            window = self._native.close(inquiry, step, self._now(), self._process)
            if window is not None:
                self._writer.append(window)
                self.tell_sources()
        for gap in inquiry.gaps:
            self._writer.append(gap)
        inquiry.gaps.clear()
        ended_ns = monotonic_ns()
        self._ladder.climbed(
            rung,
            began_ns,
            ended_ns,
            step,
            cpu_ns=thread_time_ns() - began_cpu_ns,
            once_ns=once_ns,
            explained=max(inquiry.explained, self._grown_on_devices),
            is_visible=inquiry.is_visible,
        )
        self._mark(rung, ended_ns - began_ns, step)
        self.take_censuses()
        self._importing.note(self._piles.novelty())  # ours, memray's
        noted_bytes = inquiry.own_bytes - noted_bytes
        traced_bytes = inquiry.traced_bytes if rung in (Rung.WINDOW, Rung.SECOND) else 0
        if rung is Rung.FIRST:
            self._leftovers.of_modules(before, noted_bytes)
        elif rung in (Rung.WINDOW, Rung.NATIVE):
            self._leftovers.of_opening(before, noted_bytes + traced_bytes)
        else:
            self._leftovers.of_look(before, traced_bytes)
        self._pulse.own_bytes = self._leftovers.bytes + inquiry.own_bytes
        self._pulse.is_disturbed = inquiry.is_tracing or self._native.is_open
        if rung in (Rung.WINDOW, Rung.NATIVE):
            self._pulse.next_row_ns = monotonic_ns() + _SOON_NS

    def tell_piles(self) -> None:
        """At the end: what frameworks pile up has been counted to the last step, look or none."""
        piles = self._watch.grown(self._step, self._process, self._now())
        for holding in piles:
            self._writer.append(holding)
        if piles:
            self.tell_sources()

    def take_censuses(self) -> None:
        """What the frameworks count themselves: at each look, and at the end."""
        for probe, tallies in self._piles.censuses():
            if not tallies:
                continue
            self._writer.append(Census(self._now(), self._process, probe, tallies))

    def _mark(self, rung: Rung, duration_ns: int, step: int) -> None:
        """What it cost; and, from before anything of ours lay in the heap, the counters."""
        has_values = rung in (Rung.FIRST, Rung.WINDOW, Rung.NATIVE)
        values = dict(self._last) if has_values else {}
        values["longest_ns"] = self.budget.longest_ns
        values["spent_ns"] = self.budget.spent_ns
        what = LOOKS[0] if has_values else LOOKS[1]
        # The step at which it began: by the clock, others have passed since.
        moment = replace(self._now(), step=step)
        self._writer.append(
            Mark(moment, self._process, what, duration_ns, values, rung.value, self._source)
        )

    def _inquire(self) -> Inquiry:
        if self._inquiry is None:
            # Only now: a program that does not grow never loads it. And all that a look needs:
            # imported by one of them, it would be found by the next as modules that pile up.
            import heapq  # noqa: F401 - Counter.most_common() imports it when it is first called

            import leakscope.observe.sources  # noqa: F401
            from leakscope.observe.inquiry import Inquiry
            from leakscope.observe.recount import Recount

            self._recount = Recount()
            self._inquiry = Inquiry(self._process, self._now, self.door, self._in_use)
        return self._inquiry

    def _write(self, inquiry: Inquiry, step: int) -> None:
        grown = self._last.get("in_use_bytes", 0) - self._first.get("in_use_bytes", 0)
        blocks = self._last.get("blocks_count", 0) - self._first.get("blocks_count", 0)
        if self._pulse.has_pool:
            blocks = 0  # in what is in use already
        on_devices = sum(
            self._last[name] - self._first.get(name, 0) for name in self._last if ":" in name
        )
        on_host = max(grown + blocks * USUAL_BLOCK_BYTES, 0.0)
        total = on_host + max(on_devices, 0)
        # What grows on a device is no native memory of the host: memray would see none of it.
        self._grown_on_devices = max(on_devices, 0) / total if total else 0.0
        holdings = inquiry.second_look(step, float(grown + max(on_devices, 0)), blocks)
        if inquiry.device_sites:
            steps = inquiry.device_steps
            self._writer.append(
                Window(self._now(), self._process, DEVICE_TOOL, steps, inquiry.device_sites)
            )
            self.tell_sources()
        piles = self._watch.grown(step, self._process, self._now())
        if piles:
            inquiry.explained = 1.0  # by what cannot be weighed: no native window tells more
        holdings += piles
        for holding in holdings:
            self._writer.append(holding)
        if self._recount is not None:
            self._recount.follow(holdings, step)
        if holdings:
            self.tell_sources()

    def _count_again(self, recount: Recount, step: int) -> None:
        began_ns = monotonic_ns()
        moment = replace(self._now(), step=step)
        for path, length, bytes_each in recount.count(step):
            values = {"length": length} | ({"bytes_each": bytes_each} if bytes_each else {})
            mark = Mark(moment, self._process, COUNTED, 0, values, storable(path), self._source)
            self._writer.append(mark)
        took_ns = monotonic_ns() - began_ns
        self.budget.pay(took_ns, took_ns)

    def tell_sources(self) -> None:
        if self._has_told_sources:
            return
        self._has_told_sources = True
        from leakscope.observe.sources import program_files

        for file, text in program_files():
            self._writer.append(Source(self._process, storable(file), storable(text)))

    def try_remedies(self) -> None:
        """At the end: what gives back memory that no holder was found for?"""
        if self._inquiry is not None:
            is_puzzled = self._inquiry.explained < _ENOUGH_EXPLAINED
        else:
            is_puzzled = self._ladder.may_be_puzzled(monotonic_ns())
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

    def _note_anew(self, before: dict[str, int]) -> None:
        """memray has been imported, and all lengths were noted once more."""
        self._leftovers.of_modules(before, 0)
        self._first = self._pulse.counters()

    def _in_use(self) -> int:
        return self._pulse.counters().get("in_use_bytes", 0)
