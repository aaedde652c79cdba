"""All rows of all ranks in, numbers over ranks out: DuckDB over a packed recording."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from leakscope import errors
from leakscope.export.packed import Store, open_store
from leakscope.export.parquet import PULSES
from leakscope.judge.ranks import BUCKETS, band_of
from leakscope.judge.series import IN_USE, RSS, RunSeries
from leakscope.model import BandPoint

_COLUMNS = {IN_USE: "in_use_bytes", RSS: "rss_bytes"}
_MEMORY = "256MB"
"""What a query may take. Slopes of 5 million rows took 130 MB at their highest."""


class RankStatistics(NamedTuple):
    """One rank's rows in numbers: a straight line through them, and where they lie."""

    rank: int
    slope_bytes_per_step: float
    r_squared: float
    median_bytes: float
    largest_bytes: float
    rows: int


class Statistics:
    """Queries over one packed recording."""

    def __init__(self, path: str) -> None:
        self._store = open_store(path)
        self._connection = _connect(self._store, path)
        self._files = [_url(self._store, file, path) for file in self._store.find(PULSES)]

    def band(self, sources: Mapping[int, tuple[str, str]]) -> tuple[str, tuple[BandPoint, ...]]:
        """Quantiles over ranks by stretches of steps. `sources`: process and source by rank."""
        for metric, column in _COLUMNS.items():
            spans = self._ask(
                "SELECT rank, min(step), max(step) FROM picked WHERE {value} IS NOT NULL "
                "GROUP BY rank",
                sources,
                column,
            )
            if len(spans) < len(sources) or len(spans) < 2:
                continue
            first, last = max(low for _, low, _ in spans), min(high for *_, high in spans)
            if last <= first:
                continue
            levels = self._ask(
                f"SELECT rank, least(floor((step - {first}) * {BUCKETS} / ({last} - {first})), "
                f"{BUCKETS - 1}) AS bucket, avg({{value}}) FROM picked "
                f"WHERE step BETWEEN {first} AND {last} AND {{value}} IS NOT NULL GROUP BY ALL",
                sources,
                column,
            )
            return metric, _band(levels, sorted(sources), first, last)
        return "", ()

    def ranks(self, sources: Mapping[int, tuple[str, str]]) -> tuple[RankStatistics, ...]:
        """A line, a median and the highest value of each rank's memory in use."""
        found = self._ask(
            "SELECT rank, regr_slope({value}, step), coalesce(regr_r2({value}, step), 0), "
            "median({value}), max({value}), count({value}) FROM picked GROUP BY rank ORDER BY rank",
            sources,
            _COLUMNS[IN_USE],
        )
        return tuple(RankStatistics(*row) for row in found if row[1] is not None)

    def _ask(
        self, query: str, sources: Mapping[int, tuple[str, str]], column: str
    ) -> list[tuple[Any, ...]]:
        """Over the rows of the ranks' own sources of steps."""
        if not self._files:
            return []
        chosen = [(rank, process, source) for rank, (process, source) in sources.items()]
        marks = ", ".join(["(?, ?, ?)"] * len(chosen))
        picked = (
            "WITH chosen(rank, process, source) AS (VALUES " + marks + "), picked AS ("
            "SELECT chosen.rank, rows.step, rows." + column + " FROM "
            "read_parquet(?, union_by_name=true, hive_partitioning=false) AS rows "
            "JOIN chosen USING (process, source) WHERE rows.step IS NOT NULL) "
        )
        values = [value for row in chosen for value in row]
        answer = self._connection.execute(
            picked + query.format(value=column), [*values, self._files]
        )
        return list(answer.fetchall())


def band_of_packed(path: str, run: RunSeries) -> tuple[str, tuple[BandPoint, ...]]:
    """The band over the ranks of a run, from all rows there are."""
    sources = {
        place.rank: (process, run.sources[process])
        for process, place in run.lineage.ranks().items()
        if process in run.sources
    }
    return Statistics(path).band(sources) if len(sources) > 1 else ("", ())


def _band(
    levels: list[tuple[Any, ...]], ranks: list[int], first: float, last: float
) -> tuple[BandPoint, ...]:
    table = np.full((len(ranks), BUCKETS), np.nan)
    row_of = {rank: row for row, rank in enumerate(ranks)}
    for rank, bucket, level in levels:
        table[row_of[rank], int(bucket)] = level
    return band_of(np.array(ranks), table, np.linspace(first, last, BUCKETS + 1))


def _connect(store: Store, path: str) -> Any:
    try:
        import duckdb
    except ImportError:
        raise errors.missing_extra("duckdb", "scale", "statistics over ranks") from None
    connection = duckdb.connect()
    connection.execute(f"SET memory_limit = '{_MEMORY}'")
    if "://" in path:
        connection.register_filesystem(store.files)
    return connection


def _url(store: Store, file: str, path: str) -> str:
    scheme, found, _ = path.partition("://")
    return f"{scheme}://{file.removeprefix('/')}" if found else file
