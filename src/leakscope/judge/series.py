"""Recording in, Series out: each counter of each process, on the axis of its steps."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leakscope.judge.axis import Axis, Floats, best_source, clock_axis, own_axis
from leakscope.judge.drift import FEWEST_LEVELS
from leakscope.model import IMPORTING, LOOKS, Mark, Sample, Series, SeriesKey
from leakscope.record.format import is_machine
from leakscope.record.reader import Columns, Recording

_PAGE = float(os.sysconf("SC_PAGE_SIZE"))
IN_USE = "heap.in_use_bytes"
HELD = "heap.held_bytes"
BLOCKS = "python.blocks_count"
RSS = "process.rss_bytes"
USS = "process.uss_bytes"
FILES = "process.file_bytes"
"""Pages of mapped files, as far as they are this process's own."""

ALLOCATED = "cuda.allocated_bytes"
RESERVED = "cuda.reserved_bytes"
UNUSED = "cuda.unused_bytes"
"""Of a device: in use, reserved by the framework's allocator, and the difference of the two. So
called whichever kind of device it is; the series says which."""
POOLS = "cuda.pool_bytes"
"""Of what is reserved: the pools of CUDA graphs, sampled now and then."""
PINNED = "pinned host memory"
PINNED_IN_USE = "pinned.in_use_bytes"
"""Host memory that devices copy from: it is outside malloc, and treated as a device of its own."""
_DEVICE_ROWS = {ALLOCATED: "allocated_bytes", RESERVED: "reserved_bytes"}
_PINNED_WORTH_A_WORD = 1 << 20
_SEGMENT = float(2 << 20)
"""The allocator reserves in pieces of so much at least."""

_ROWS = {IN_USE: "in_use_bytes", HELD: "held_bytes", BLOCKS: "blocks_count", RSS: "rss_bytes"}
_SAMPLES = {USS: "uss_bytes", FILES: "file_bytes"}
_EXACT = {IN_USE, HELD, BLOCKS}

_LONGEST_START_UP_NS = 30e9
"""Importing the largest frameworks takes up to 20 s on a slow disk."""
_WORTH_A_LOOK = 0.1
_RISE_WORTH_A_WORD = 16 * 2.0**20

BySeries = dict[tuple[str, str], Series]
"""Keyed by metric and process."""


class RunSeries:
    """Every series of a run, with the axis each process is judged on."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.lineage = recording.lineage()
        self.sources = {
            process: source
            for process in recording.pulsed()
            if (source := best_source(recording, process)) is not None
        }
        self.axes = {
            process: own_axis(recording, process, source)
            for process, source in self.sources.items()
            if source != "fetch"
        }
        self._by_clock = recording.run.settings.get("steps_from") == "time"
        self.axis = self._main_axis()
        self.series: BySeries = {}
        self.rows: dict[tuple[str, str], tuple[Floats, Floats]] = {}
        """Steps and values of every row, by metric and process, before any is left out."""
        self.on_devices: dict[tuple[str, str], dict[str, Series]] = {}
        """By process and device."""
        samples: dict[str, list[Sample]] = {}
        for sample in recording.samples:
            samples.setdefault(sample.process, []).append(sample)
        for process in dict.fromkeys((*recording.pulsed(), *samples)):
            if not is_machine(process):
                self._add_rows(process)
                self._add_samples(process, samples.get(process, ()))

    def of(self, process: str) -> dict[str, Series]:
        return {metric: series for (metric, name), series in self.series.items() if name == process}

    def devices_of(self, process: str) -> dict[str, dict[str, Series]]:
        return {
            device: series for (name, device), series in self.on_devices.items() if name == process
        }

    def allocator_of(self, process: str) -> str:
        """As the process itself was seen to use it."""
        start = self.recording.starts.get(process)
        return (start.environment.get("allocator") if start else None) or "the allocator"

    def rise_after_last_step(self) -> float:
        """How much the stepping process grew when it stepped no more, if that is worth a word."""
        process = self.axis.process
        if process is None or len(self.axis.mono_ns) < 2:
            return 0.0
        columns = self.recording.columns(process, "time")
        moments = _floats(columns.get("mono_ns", ()))
        resident = _floats(columns.get("rss_bytes", ()))
        end = self.axis.mono_ns[-1]
        # What the end of the program does, CUDA's clean-up above all, is not what it does.
        over = min(self._marked("exiting", "end"), default=np.inf)
        after, before = resident[(moments > end) & (moments < over)], resident[moments <= end]
        lasted = (
            (min(moments[-1], over) - end) / (end - self.axis.mono_ns[0]) if len(moments) else 0.0
        )
        if len(after) < 2 or not len(before) or lasted < _WORTH_A_LOOK:
            return 0.0
        rise = float(np.max(after) - np.max(before))
        return rise if rise > max(_RISE_WORTH_A_WORD, 0.05 * float(np.max(before))) else 0.0

    @property
    def has_steps(self) -> bool:
        """Whether any process made steps, also where the clock was asked for."""
        return any(len(axis.steps) for axis in self.axes.values())

    def _main_axis(self) -> Axis:
        """The steps of the run: of the main process, of rank 0, of whoever steps most."""
        starts = self.recording.starts

        def importance(process: str) -> tuple[bool, bool, float]:
            start = starts.get(process)
            kind = start.kind if start else ""
            place = self.lineage.place_of(process)
            is_first = place is not None and place.rank == 0
            # Every task of a job that was merged has a main process of its own.
            is_alone = place is None or is_first or not self.recording.run.hosts
            is_main = kind == "main" and is_alone
            return is_main, is_first, float(self.axes[process].last_step)

        stepping = [process for process, axis in self.axes.items() if len(axis.steps) >= 2]
        if stepping and not self._by_clock:
            return self.axes[max(stepping, key=importance)]
        moments = [
            ns
            for process in self.recording.pulsed()
            for source in self.recording.sources(process)
            for ns in self.recording.columns(process, source).get("mono_ns", ())
            if ns is not None
        ]
        first, last = min(moments, default=0), max(moments, default=0)
        end = min([last, *self._marked("exiting", "end")])
        started = [
            one for one in self._marked("imported", "compiled") if not _is_late(one, first, end)
        ]
        begin = max([first, *self._marked("armed"), *started])
        return clock_axis(begin, end, self._not_its_own(begin, end))

    def _marked(self, *what: str) -> list[int]:
        """When the main process was done importing, when it began to clean up: what memory does
        before and after is not what the program does."""
        return [mark.at.mono_ns for mark in self._marks_of_main(what)]

    def _not_its_own(self, begin: float, end: float) -> list[tuple[float, float]]:
        """When the main process waited for a look, or loaded modules: their memory stays, and is
        no growth. A program that loads modules most of the time does so as its work."""
        looks = _spans(self._marks_of_main(LOOKS))
        imports = _spans(self._marks_of_main((IMPORTING,)))
        loading = sum(min(until, end) - max(since, begin) for since, until in imports)
        is_its_work = end - begin > _LONGEST_START_UP_NS and loading > (end - begin) / 2
        return looks if is_its_work else [*looks, *imports]

    def _marks_of_main(self, what: Sequence[str]) -> list[Mark]:
        main = {process for process, start in self.recording.starts.items() if start.kind == "main"}
        return [mark for mark in self.recording.marks if mark.what in what and mark.process in main]

    def axis_of(self, process: str) -> Axis:
        """A process that steps by itself has its own axis; a worker is on its parent's."""
        if self._by_clock:
            return self.axis
        own = self.axes.get(process)
        if own is not None and len(own.steps) >= 2:
            return own
        parent = self.lineage.parent_of(process)
        axis = self.axes.get(parent) if parent is not None else None
        return axis if axis is not None and len(axis.steps) >= 2 else self.axis

    def _add_rows(self, process: str) -> None:
        if process in self.sources:
            self._add_columns(process, self.sources[process], tuple(_ROWS))
            return
        # By the clock: the exact counters from inside, and resident memory from outside, where it
        # is read more often and from the first moment on.
        sources = self.recording.sources(process)
        has_outside = "time" in sources
        if "tick" in sources:
            known = tuple(m for m in _ROWS if m in _EXACT) if has_outside else tuple(_ROWS)
            self._add_columns(process, "tick", known)
        if has_outside:
            self._add_columns(process, "time", (RSS,))

    def _add_columns(self, process: str, source: str, metrics: Sequence[str]) -> None:
        columns = self.recording.columns(process, source)
        if "mono_ns" not in columns:
            return
        axis = self.axis_of(process)
        moments = _floats(columns["mono_ns"])
        is_own = axis.process == process
        is_stepping = is_own and "step" in columns
        steps = _floats(columns["step"]) if is_stepping else axis.during(moments)
        collections = _floats(columns.get("collections_count", ()))
        for metric in metrics:
            if (name := _ROWS[metric]) in columns:
                self._add(metric, process, steps, _floats(columns[name]), collections)
        for device in sorted({name.partition(".")[0] for name in columns if ":" in name}):
            self._add_device(process, device, columns, steps)

    def _add_device(self, process: str, device: str, columns: Columns, steps: Floats) -> None:
        values = {
            metric: _floats(columns.get(f"{device}.{name}", ()))
            for metric, name in _DEVICE_ROWS.items()
        }
        values[UNUSED] = values[RESERVED] - values[ALLOCATED]
        found = self.on_devices.setdefault((process, device), {})
        for metric, column in values.items():
            one = _series(SeriesKey(metric, process, device), steps, column)
            if one is not None:
                found[metric] = one

    def _add_samples(self, process: str, samples: Sequence[Sample]) -> None:
        steps = self.axis_of(process).during(_floats([sample.at.mono_ns for sample in samples]))
        for metric, name in _SAMPLES.items():
            values = _floats([sample.values.get(name) for sample in samples])
            self._add(metric, process, steps, values, np.array([]))
        pinned = _floats([sample.values.get("pinned_bytes") for sample in samples])
        for device in {sample.probe for sample in samples if "pool_bytes" in sample.values}:
            of_device = [sample for sample in samples if sample.probe == device]
            read = _floats([sample.values.get("pool_bytes") for sample in of_device])
            moments = _floats([sample.at.mono_ns for sample in of_device])
            at = self.axis_of(process).during(moments)
            pools = _series(SeriesKey(POOLS, process, device), at, read)
            if pools is not None and (process, device) in self.on_devices:
                self.on_devices[process, device][POOLS] = pools
        if len(pinned) and np.nanmax(np.nan_to_num(pinned)) >= _PINNED_WORTH_A_WORD:
            one = _series(SeriesKey(PINNED_IN_USE, process, PINNED), steps, pinned)
            if one is not None:
                self.on_devices[process, PINNED] = {PINNED_IN_USE: one}

    def _add(
        self, metric: str, process: str, steps: Floats, values: Floats, collections: Floats
    ) -> None:
        read = ~np.isnan(values) & ~np.isnan(steps)
        steps, values = steps[read], values[read]
        rising = np.concatenate(([True], np.diff(steps) > 0)) if len(steps) else read[:0]
        steps, values = steps[rising], values[rising]
        if not len(steps):
            return
        self.rows[metric, process] = steps, values
        kept = even_out(steps)
        if self.axis.source == "time":
            kept = before_release(values, kept)
        floors: tuple[int, ...] = ()
        if len(collections):
            # The first row after a full collection: what is left then is not garbage.
            counts = collections[read][rising][kept]
            floors = tuple(int(i) + 1 for i in np.flatnonzero(np.diff(counts) > 0))
        steps, values = steps[kept], values[kept]
        is_count = metric == BLOCKS
        self.series[metric, process] = Series(
            key=SeriesKey(metric, process),
            unit="blocks" if is_count else "bytes",
            steps=tuple(steps.tolist()),
            values=tuple(values.tolist()),
            floors=floors,
            is_exact=metric in _EXACT,
            resolution=0.0 if metric in _EXACT else _PAGE,
            has_blocks=metric == IN_USE and bool(self.recording.pool_of(process)),
        )


def _series(key: SeriesKey, steps: Floats, values: Floats) -> Series | None:
    """Of a counter that a device's allocator keeps."""
    read = ~np.isnan(values) & ~np.isnan(steps)
    steps, values = steps[read], values[read]
    if not len(steps):
        return None
    rising = np.concatenate(([True], np.diff(steps) > 0))
    steps, values = steps[rising], values[rising]
    kept = even_out(steps)
    is_exact = key.metric in (ALLOCATED, PINNED_IN_USE)
    return Series(
        key=key,
        unit="bytes",
        steps=tuple(steps[kept].tolist()),
        values=tuple(values[kept].tolist()),
        is_exact=is_exact,
        resolution=0.0 if is_exact else _SEGMENT,
    )


def _spans(marks: Sequence[Mark]) -> list[tuple[float, float]]:
    return [(float(one.at.mono_ns - one.duration_ns), float(one.at.mono_ns)) for one in marks]


def _is_late(started_ns: float, first_ns: float, end_ns: float) -> bool:
    """Whether new modules came to the very end of a long run: that is its work, not its start."""
    life = end_ns - first_ns
    return life > _LONGEST_START_UP_NS and end_ns - started_ns < life / 10


def before_release(values: Floats, kept: NDArray[np.intp]) -> NDArray[np.intp]:
    """Without the last rows in which a program on its way out lets go of everything.

    The locals of `main()` are freed when it returns, which is before anything tells that the
    program ends. At most a tenth of the rows is given up for it.
    """
    tail = kept[-max(len(kept) // 10, 1) - 1 :]
    if len(kept) < 10:
        return kept
    high = int(np.argmax(values[tail]))
    is_release = values[tail[-1]] < 0.95 * values[tail[high]]
    return kept[: len(kept) - len(tail) + high + 1] if is_release else kept


def even_out(steps: Floats) -> NDArray[np.intp]:
    """Which rows to keep so that the start of a run does not outweigh the rest of it.

    Rows lie close together at first and thin out as their cost is spread over time; a plateau
    at the end must not lose against a rise at the start only because it has fewer rows.
    """
    if len(steps) < 3:
        return np.arange(len(steps))
    late = steps[steps >= (steps[0] + steps[-1]) / 2]
    shortest = float(np.median(np.diff(late))) / 2 if len(late) > 2 else 0.0
    if float(np.min(np.diff(steps))) >= shortest:
        return np.arange(len(steps))
    kept = [0]
    for index in range(1, len(steps)):
        if steps[index] - steps[kept[-1]] >= shortest:
            kept.append(index)
    # Of few none is left out: nine values of a program of a fifth of a second, a straight line,
    # became seven, which nobody judges.
    return np.array(kept) if len(kept) >= FEWEST_LEVELS else np.arange(len(steps))


def _floats(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
