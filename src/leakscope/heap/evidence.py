"""What the heap snapshots of a process show: which holders keep more with every step."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from leakscope.heap.holdings import holdings_of
from leakscope.model import Holding, HoldingKind, Snapshot
from leakscope.record.reader import Recording

_FEWEST = 2
"""Snapshots that growth can be told from."""


class Evidence(NamedTuple):
    """The snapshots of one process that belong together, and what grew between them."""

    process: str
    snapshots: tuple[Snapshot, ...]
    holdings: tuple[Holding, ...]
    has_pool: bool = False
    """A library hands out memory from a pool of its own: small objects are in malloc's counter."""

    @property
    def source(self) -> str:
        """Whose steps the snapshots are numbered by."""
        return self.snapshots[-1].source if self.snapshots else ""

    @property
    def steps(self) -> int:
        """From the first snapshot to the last."""
        if len(self.snapshots) < _FEWEST:
            return 0
        return (self.snapshots[-1].at.step or 0) - (self.snapshots[0].at.step or 0)

    def grown(self, counter: str) -> float:
        """By how much a counter rose from the first snapshot to the last; 0 if it did not."""
        if len(self.snapshots) < _FEWEST:
            return 0.0
        first, last = self.snapshots[0].values, self.snapshots[-1].values
        if counter not in first or counter not in last:
            return 0.0
        return float(max(last[counter] - first[counter], 0))

    def grown_live(self, block_bytes: float) -> float:
        """Growth of live memory: malloc's, and small Python objects of this many bytes each."""
        if self.snapshots and "in_use_bytes" not in self.snapshots[-1].values:
            return self.grown("rss_bytes")  # small objects are in it already
        blocks = 0.0 if self.has_pool else self.grown("blocks_count") * block_bytes
        return self.grown("in_use_bytes") + blocks

    def small_object_bytes(self) -> float | None:
        """Average size of the small Python objects that came, by what the snapshots saw of them;
        None where most of them are not in what grew."""
        blocks = 0.0 if self.has_pool else self.grown("blocks_count")
        seen = [one for one in self.holdings if one.blocks_each > 0 and one.sizes]
        number = sum(_more(one) * one.blocks_each for one in seen)
        size = sum(_more(one) * one.in_blocks for one in seen)
        return size / number if blocks > 0 and number >= blocks / 2 else None


def _more(holding: Holding) -> float:
    """Items that came from the first snapshot to the last."""
    return max(holding.counts[-1][1] - holding.counts[0][1], 0)


NO_EVIDENCE = Evidence("", (), ())


def evidence_of(recording: Recording) -> dict[str, Evidence]:
    """The evidence for each process that was looked at while it grew."""
    found = {}
    looked_at = [one.process for one in recording.snapshots]
    looked_at += [one.process for one in recording.holdings]
    for process in dict.fromkeys(looked_at):
        snapshots = _of_last_source(recording, process)
        holdings = tuple(_all_holdings(recording, process, snapshots))
        has_pool = bool(recording.pool_of(process))
        found[process] = Evidence(process, snapshots, holdings, has_pool)
    return found


def _of_last_source(recording: Recording, process: str) -> tuple[Snapshot, ...]:
    """Those of one way of counting steps: a model that is built before the first step grows too."""
    ours = [one for one in recording.snapshots if one.process == process and one.why == "growth"]
    runs = [list(group) for _, group in groupby(ours, key=lambda one: one.source)]
    return tuple(runs[-1]) if runs else ()


def _all_holdings(
    recording: Recording, process: str, snapshots: tuple[Snapshot, ...]
) -> Iterator[Holding]:
    written = [one for one in snapshots if one.file]
    # One without a framework's part has fewer bytes than the others, which says nothing.
    whole = [one for one in written if not one.skipped]
    written = whole if len(whole) >= _FEWEST else written
    if len(written) >= _FEWEST:
        yield from holdings_of([Path(recording.directory, one.file) for one in written], written)
    # A recording may have them already: what a framework counts itself, what was analyzed before.
    ours = [one for one in recording.holdings if one.process == process]
    counted = [one for one in ours if one.kind == HoldingKind.FRAMEWORK_CACHE]
    yield from counted[-1:]
    for one in ours:
        if one.kind not in (HoldingKind.FRAMEWORK_CACHE, HoldingKind.SHARED_PAGES):
            yield one if one.sizes else replace(one, sizes=_sizes(one))


def _sizes(holding: Holding) -> tuple[tuple[int, int], ...]:
    return tuple((step, round(count * holding.bytes_each)) for step, count in holding.counts)
