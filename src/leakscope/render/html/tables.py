"""Ranks, devices and full moments as tables of words: the same that other renderers draw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from leakscope import text
from leakscope.model import FullMoment, Report
from leakscope.render import family, sentences

_MOST_ROWS = 200
"""Of any table; `report.json` has the rest."""


class Tabled(NamedTuple):
    """A table with the sentence that stands above it."""

    says: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...]
    """Columns of numbers."""


def rank_tables(report: Report) -> list[Tabled]:
    """The ranks beside each other, and the band over them."""
    if report.job is None:
        return []
    job = report.job
    ranks = family.rank_table(family.ranks_to_show(job, _MOST_ROWS))
    tables = [Tabled(text.sentence(job.says), ranks.headers, ranks.rows, ranks.right)]
    if job.band:
        band = family.band_table(job.band)
        says = f"{text.metric(job.band_metric)}, over the ranks."
        tables.append(Tabled(says, band.headers, band.rows, band.right))
    return tables


def device_tables(report: Report) -> list[Tabled]:
    """Each device from the driver's number down, level by level."""
    return [
        Tabled(
            f"{sentences.device_title(levels, is_one_of_many=len(report.processes) > 1)}: "
            f"{text.sentence(levels.says)}",
            ("part", "size", "share"),
            tuple(_parts(levels.parts)),
            (1, 2),
        )
        for levels in report.devices[:_MOST_ROWS]
    ]


def full_tables(report: Report) -> list[Tabled]:
    """What was in memory when it ran out, or was about to."""
    return [
        Tabled(
            " ".join((text.sentence(moment.says), *_rest(moment))),
            ("size", "what was in memory"),
            tuple(
                (text.size(one.bytes), sentences.occupied(one))
                for one in moment.contents[:_MOST_ROWS]
            ),
            (0,),
        )
        for moment in report.black_boxes
    ]


def _rest(moment: FullMoment) -> Iterator[str]:
    if rest := sentences.contents_left(moment, min(len(moment.contents), _MOST_ROWS)):
        yield text.sentence(rest)


def _parts(parts: dict[str, int]) -> Iterator[tuple[str, str, str]]:
    total = sum(parts.values())
    for name, size in sorted(parts.items(), key=lambda part: -part[1]):
        yield text.clean(name), text.size(size), text.percent(size / total) if total > 0 else ""
