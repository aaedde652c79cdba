"""The processes and the ranks of a run as tables of words, for every renderer that draws tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from leakscope import text
from leakscope.model import BandPoint, Job, Outcome, ProcessSummary, Rank
from leakscope.render import sentences


class Table(NamedTuple):
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...]
    """Columns of numbers."""
    spare: tuple[int, ...]
    """Columns that may be left out where space is short, the first one first."""


class _Column(NamedTuple):
    header: str
    cell: Callable[[ProcessSummary], str]
    is_always: bool = True
    """Otherwise it is there only if one of its cells says more than nothing."""


def _size(value: int | None) -> str:
    return "" if value is None else text.size(value)


def _name(process: ProcessSummary) -> str:
    name = text.clean(process.name).strip() or text.clean(process.process)
    return name if process.is_followed else f"{name} *"


_COLUMNS = (
    _Column("process", _name),
    _Column("pid", lambda one: str(one.pid)),
    _Column("steps", lambda one: "" if one.steps is None else text.count(one.steps)),
    _Column("RSS first", lambda one: _size(one.first_rss_bytes)),
    _Column("last", lambda one: _size(one.last_rss_bytes)),
    _Column("peak", lambda one: _size(one.peak_rss_bytes)),
    _Column("private", lambda one: _size(one.last_uss_bytes)),
    _Column("shared", lambda one: _size(one.last_shared_bytes)),
    _Column("PSS", lambda one: _size(one.last_pss_bytes)),
    _Column("shm", lambda one: _size(one.last_shared_memory_bytes), is_always=False),
    _Column("swap", lambda one: _size(one.last_swap_bytes), is_always=False),
    _Column("copied", lambda one: _size(one.copied_bytes), is_always=False),
    _Column("asked for", lambda one: _size(one.allocated_bytes), is_always=False),
    _Column("ended", sentences.process_end),
)
_SPARE = ("RSS first", "pid", "shm", "shared", "swap", "last", "steps", "asked for", "PSS")
_NOTHING = {"", "0 B"}


def process_table(processes: Sequence[ProcessSummary]) -> Table:
    """What each process had: private and shared memory, and its fair part of both."""
    shown = [
        column
        for column in _COLUMNS
        if (column.is_always and column.header not in _UNREAD)
        or any(column.cell(one) not in _NOTHING for one in processes)
    ]
    headers = tuple(column.header for column in shown)
    return Table(
        headers,
        tuple(tuple(column.cell(one) for column in shown) for one in processes),
        tuple(range(1, len(headers) - 1)),
        tuple(headers.index(name) for name in _SPARE if name in headers),
    )


_UNREAD = ("shared", "PSS")
"""Empty in recordings of a program that was watched from inside only."""


def together(processes: Sequence[ProcessSummary]) -> str | None:
    """What those that lived to the end had in all, each shared page counted once."""
    alive = [one for one in processes if not one.ended_early and one.last_pss_bytes is not None]
    if len(alive) < 2:
        return None
    pss = sum(one.last_pss_bytes or 0 for one in alive)
    private = sum(one.last_uss_bytes or 0 for one in alive)
    said = (
        f"{text.plural(len(alive), 'process', 'processes')} to the end: {text.size(pss)} together "
        f"(PSS), {text.size(private)} of it private"
    )
    if any(one.copied_bytes for one in processes):
        said += "; copied: pages shared at the fork that became a process's own by being written to"
    return said


def rank_table(ranks: Sequence[Rank]) -> Table:
    """One row for each start of each rank."""
    has_restarts = any(one.restart for one in ranks)
    has_hosts = len({one.host for one in ranks}) > 1
    headers = ["rank", *(["restart"] * has_restarts), *(["host"] * has_hosts)]
    headers += ["steps", "verdict", "per step", "between", "RSS last", "peak", "keeps", ""]
    rows = []
    for one in ranks:
        rate = one.bytes_per_step
        row = [str(one.rank), *([str(one.restart)] * has_restarts)]
        row += [text.clean(one.host)] * has_hosts
        row += [
            "" if one.steps is None else text.count(one.steps),
            one.outcome.value.upper(),
            text.rate(rate.value).removesuffix("/step"),
            text.rate_between(rate.low, rate.high).removesuffix("/step"),
            _size(one.last_rss_bytes),
            _size(one.peak_rss_bytes),
            " ".join(text.clean(word) for word in one.fingerprints),
            "deviates" if one.deviates else "",
        ]
        rows.append(tuple(row))
    right = tuple(i for i, head in enumerate(headers) if head not in ("verdict", "host", "keeps"))
    spare = tuple(headers.index(name) for name in ("between", "keeps", "RSS last", "steps"))
    return Table(tuple(headers), tuple(rows), right[:-1], spare)


def ranks_to_show(job: Job, most: int) -> list[Rank]:
    """All of a small job; of a large one those that stand out or grow, and then the first."""
    if len(job.ranks) <= most:
        return list(job.ranks)
    growing = (Outcome.LEAK, Outcome.GROWING)
    ranked = sorted(
        job.ranks,
        key=lambda one: (not one.deviates, one.outcome not in growing, one.rank, one.restart),
    )
    return sorted(ranked[:most], key=lambda one: (one.rank, one.restart))


def band_table(points: Sequence[BandPoint]) -> Table:
    """The band over ranks at the beginning, in the middle and at the end."""
    chosen = _spread(points)
    rows = tuple(
        (
            text.count(point.step),
            *(text.size(size) for size in (point.low, point.median, point.high, point.largest)),
            f"rank {point.largest_rank}",
        )
        for point in chosen
    )
    headers = ("at step", "a tenth below", "median", "a tenth above", "highest", "")
    return Table(headers, rows, (0, 1, 2, 3, 4), (1, 3))


def _spread(points: Sequence[BandPoint]) -> Iterable[BandPoint]:
    if len(points) <= 3:
        return points
    return [points[0], points[len(points) // 2], points[-1]]
