"""What a rule is: a number, a name, a remedy, and a function that knows its pattern.

Its docstring is its page, in `leakscope explain` and in docs/rules.md.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakscope.attribute.suspect import Suspect
from leakscope.judge.overall import Overall
from leakscope.judge.series import IN_USE, RunSeries
from leakscope.model import REMEDY, SEVERAL_STEP, Holding, Link, Outcome, Series, Shape, Verdict

HEADINGS = ("Why it leaks", "Example", "Use instead", "Not this rule when")
"""Of every page, in this order."""

HARMLESS_HEADINGS = ("Why it looks like a leak", "Example", "What to do", "Not this rule when")


_WORTH_SAYING, _OF_LIVE, _OF_LIVE_SETTLED = 1 << 20, 0.02, 0.05
"""Bytes, and share of what is live in the end, from which a harmless rise is told of. Logs, rings
and pools of the libraries fill up by some 50 KiB in any run (measured: torch.distributed,
Lightning). One that nobody would see on a curve of the whole is taken for a leak by nobody: below a
fiftieth, the optimizer state of small models would be told of in every second program. A
twentieth where the reason is not known, only the form. Of what is live, since resident memory is
0.3 GiB or 0.65 with the libraries of torch's builds."""
FIRST_STEPS = 10
"""What was over by then nobody takes for a leak. A choice."""
_STILL_TO_COME = 0.1
"""Of a rise. A choice."""
_FEW_VALUES = 0.05
"""Share of the values, at either end, that a spike or a dip may be."""


class Weight(IntEnum):
    """How much a rule knows about its pattern. Of several that match, the heaviest speaks."""

    ANYTHING = 0
    """It takes what nobody else wants."""
    KIND = 1
    """It knows what kind of thing grows: an array, native memory, results of a model."""
    ITEM = 2
    """It knows what one item keeps: a graph, a traceback, the base of a view."""
    HOLDER = 3
    """It knows who holds: a cache, an iterator, a queue, a hook, a library's registry."""
    CAUSE = 4
    """It knows what is done: a cycle, a copy on write, a graph that gets longer."""
    FRAMEWORK = 5
    """It knows the very table of a framework, or what only one framework has."""


class Case(NamedTuple):
    """What a rule is asked about: one suspect, and where it was seen."""

    suspect: Suspect
    process_kind: str = "main"
    """main, worker (of a data loader), child, rank."""
    steps_from: str = "optimizer"
    """What the steps of the run are: optimizer, forward, fetch, dataloader, api, time."""
    sources: Mapping[str, str] = MappingProxyType({})
    """Texts of the program's files, by path."""

    @property
    def holding(self) -> Holding:
        return self.suspect.holding

    @property
    def above(self) -> tuple[Link, ...]:
        """From the root to the thing that grows, which is the last."""
        return self.holding.path[: self.holding.grows_at + 1]

    @property
    def below(self) -> tuple[Link, ...]:
        """What one item of it leads to."""
        return self.holding.path[self.holding.grows_at + 1 :]

    @property
    def kept_by(self) -> str:
        """The source of the keeping statement."""
        return (self.suspect.keeper.source or "") if self.suspect.keeper is not None else ""

    def share_of(self, *parts: str) -> float:
        """How much of what one item keeps is of these kinds: tensors, saved, nodes, arrays…"""
        whole = sum(self.holding.parts.values())
        return sum(self.holding.parts.get(part, 0.0) for part in parts) / whole if whole else 0.0


class RunCase(NamedTuple):
    """What a rule about harmless behaviour is asked about: the whole run."""

    run: RunSeries
    overall: Overall
    suspects: tuple[Suspect, ...]
    roles: Mapping[str, int]
    """Bytes by role in the stepping process, as the last census has them: parameter, gradient,
    optimizer state."""

    @property
    def lead(self) -> str:
        """The process the run is about: it counts the steps, or it is the main one."""
        starts = self.run.recording.starts.items()
        main = next((process for process, start in starts if start.kind == "main"), "")
        return self.run.axis.process or main

    @property
    def worth_saying(self) -> float:
        """Bytes by which something must rise to be told of."""
        return self._worth(_OF_LIVE)

    def _worth(self, share: float) -> float:
        live = self.series(IN_USE)
        return max(_WORTH_SAYING, share * live.values[-1] if live is not None else 0.0)

    @property
    def is_steady(self) -> bool:
        return self.overall.outcome is Outcome.STEADY

    @property
    def is_growing(self) -> bool:
        return self.overall.outcome in (Outcome.GROWING, Outcome.LEAK)

    @property
    def collected_at_end(self) -> float:
        """Bytes that a full collection gave back when the stepping process was done."""
        for mark in self.run.recording.marks:
            if (mark.what, mark.text, mark.process) == (REMEDY, "collection", self.lead):
                values = mark.values
                return float(
                    values.get("in_use_bytes before", 0) - values.get("in_use_bytes after", 0)
                )
        return 0.0

    @property
    def steps_in_several_threads(self) -> bool:
        """Then what is resident at a step is what several of them need, in arenas of their own."""
        marks = self.run.recording.marks
        return any(mark.what == SEVERAL_STEP and mark.process == self.lead for mark in marks)

    def series(self, metric: str) -> Series | None:
        return self.run.series.get((metric, self.lead))

    def verdict(self, metric: str) -> Verdict | None:
        for one in self.overall.verdicts:
            if one.series.metric == metric and one.series.process == self.lead:
                return one
        return None

    def devices(self) -> Iterator[tuple[str, dict[str, Verdict], dict[str, Series]]]:
        """Each device of the leading process, with its verdicts and series by metric."""
        for device, series in self.run.devices_of(self.lead).items():
            verdicts = {
                one.series.metric: one
                for one in self.overall.verdicts
                if one.series.process == self.lead and one.series.device == device
            }
            yield device, verdicts, series

    def detail(self, device: str, name: str) -> int:
        """As the last sample of a device of the leading process has it."""
        for sample in reversed(self.run.recording.samples):
            if sample.process == self.lead and sample.probe == device and name in sample.values:
                return sample.values[name]
        return 0

    def tallied(self, device: str, role: str) -> tuple[int, int]:
        """Bytes of one role on a device and in how many blocks, as the last census has them."""
        for census in reversed(self.run.recording.censuses):
            if census.process == self.lead and census.probe == device:
                of_role = [tally for tally in census.tallies if tally.role == role]
                return sum(one.bytes for one in of_role), sum(one.count for one in of_role)
        return 0, 0

    def told(self, probe: str, role: str) -> int | None:
        """What a framework last counted itself in the stepping process; None if it did not."""
        for census in reversed(self.run.recording.censuses):
            if census.process == self.lead and census.probe == probe:
                return next((one.count for one in census.tallies if one.role == role), None)
        return None

    def threads(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The number of threads while steps were made: at which steps it was read, and how many."""
        read = [
            (sample.at.mono_ns, sample.values["threads_count"])
            for sample in self.run.recording.samples
            if sample.process == self.lead and "threads_count" in sample.values
        ]
        moments = np.array([moment for moment, _ in read], dtype=np.float64)
        steps = self.run.axis.during(moments)
        counts = np.array([count for _, count in read], dtype=np.int64)
        return steps[~np.isnan(steps)], counts[~np.isnan(steps)]

    def settled(self, metric: str, *shapes: Shape) -> Verdict | None:
        """The verdict on this counter, if it is steady, of one of these shapes and worth a word."""
        one = self.verdict(metric)
        if one is None or one.outcome is not Outcome.STEADY or one.shape not in shapes:
            return None
        return one if one.size_bytes >= self._worth(_OF_LIVE_SETTLED) else None

    def rows(self, column: str) -> list[tuple[int, int]]:
        """Steps and values as they were read: a series has those of a short run taken together."""
        columns = self.run.recording.columns(self.lead, self.run.axis.source)
        pairs = zip(columns.get("step", ()), columns.get(column, ()), strict=False)
        return [(step, value) for step, value in pairs if step is not None and value is not None]

    def is_of_first_steps(self, column: str) -> bool:
        """Was nearly all of a rise there by the tenth step? A verdict said "step 27" of what CUDA
        loads in the first one."""
        rows = self.rows(column)
        later = [value for step, value in rows if step > FIRST_STEPS]
        if not later or len(later) == len(rows):
            return False
        start = rows[0][1]
        rise = float(np.median(later)) - start
        return rise > 0 and later[0] - start >= (1 - _STILL_TO_COME) * rise

    def is_at_rest(self, rise: Verdict) -> bool:
        """Since its last rise it has moved by less than it rose, but for a few values: rows by the
        clock, and the teeth of a cache that every request fills anew, go up and down by more."""
        series = self.series(rise.series.metric)
        if series is None or not rise.steps_at:
            return False
        later = np.asarray(series.values)[np.asarray(series.steps) > rise.steps_at[-1]]
        if not len(later):
            return True
        low, high = np.quantile(later, (_FEW_VALUES, 1 - _FEW_VALUES))
        return bool(high - low < rise.size_bytes)


@dataclass(frozen=True)
class Page:
    """What every rule has."""

    code: str
    name: str
    page: str
    """Markdown, from the docstring: a first sentence and the four headings."""


@dataclass(frozen=True)
class Rule(Page):
    """One pattern of leaks."""

    blame: str
    """your-code or library."""
    fix: str
    """A sentence that a person can follow without reading more."""
    weight: Weight
    matches: Callable[[Case], bool]


@dataclass(frozen=True)
class Harmless(Page):
    """Something that looks like a leak and is none. Numbers LS001 to LS099."""

    says: Callable[[RunCase], str | None]
    """A sentence with the figures of this run, or None where it was not seen."""
    unless: frozenset[str] = frozenset()
    """Rules that know the reason of what this one only sees: where one speaks, it is silent."""


def rule(
    code: str, *, fix: str, weight: Weight, blame: str = "your-code"
) -> Callable[[Callable[[Case], bool]], Rule]:
    """Make a rule of a function that says whether a case is one of its pattern.

    The name of the rule is the name of the function."""

    def make(function: Callable[[Case], bool]) -> Rule:
        return Rule(code, *_titled(function), blame, fix, weight, function)

    return make


def harmless(
    code: str, *, unless: tuple[str, ...] = ()
) -> Callable[[Callable[[RunCase], str | None]], Harmless]:
    """Make a rule of a function that says, in a sentence, why something is no leak."""

    def make(function: Callable[[RunCase], str | None]) -> Harmless:
        return Harmless(code, *_titled(function), function, frozenset(unless))

    return make


def _titled(function: Callable[..., object]) -> tuple[str, str]:
    return function.__name__.replace("_", "-"), inspect.cleandoc(function.__doc__ or "")
