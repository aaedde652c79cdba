"""The ranks of a job beside each other: who stands out, and what all of them share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leakscope import text
from leakscope.judge.account import Account
from leakscope.judge.overall import Overall
from leakscope.judge.ranks import Pace, band_over, deviating
from leakscope.judge.series import IN_USE, RSS, RunSeries
from leakscope.model import BandPoint, Finding, Job, Outcome, ProcessSummary, Rank, Rate, Series
from leakscope.record.lineage import Place

_GROWS = (Outcome.GROWING, Outcome.LEAK)
_NOTHING = Rate(0.0, 0.0, 0.0)
_MOST_NAMED = 6


def job_of(
    run: RunSeries,
    overall: Overall,
    findings: Sequence[Finding],
    processes: Sequence[ProcessSummary],
    band: tuple[str, tuple[BandPoint, ...]] | None = None,
) -> Job | None:
    """None for a run without ranks. `band`: where it has been made from more than the series."""
    places = run.lineage.ranks()
    if len({place.rank for place in places.values()}) < 2:
        return None
    accounts = {account.process: account for account in overall.accounts}
    summaries = {summary.process: summary for summary in processes}
    families = _families(run, places, summaries)
    latest = {place.rank: process for process, place in places.items()}  # the last start of each
    paces = {
        rank: Pace(accounts[process].verdict.outcome, accounts[process].verdict.bytes_per_step)
        for rank, process in latest.items()
        if process in accounts
    }
    standing_out = deviating(paces)
    ranks = tuple(
        _rank(
            summaries[process],
            place,
            accounts.get(process),
            tuple(f.fingerprint for f in findings if families[process] & {*f.processes}),
            place.rank in standing_out and latest[place.rank] == process,
        )
        for process, place in places.items()
    )
    kept = [{*one.fingerprints} for one in ranks if latest[one.rank] in places]
    common = tuple(sorted(set.intersection(*kept))) if kept else ()
    metric, points = band or _band(run, latest)
    return Job(_says(ranks, standing_out, common), ranks, standing_out, common, metric, points)


def _families(
    run: RunSeries, places: Mapping[str, Place], summaries: Mapping[str, ProcessSummary]
) -> dict[str, set[str]]:
    """Names of each rank and of the processes it started."""
    families: dict[str, set[str]] = {process: set() for process in places}
    by_place = {place: process for process, place in places.items()}
    for process, summary in summaries.items():
        place = run.lineage.place_of(process)
        if place is not None and place in by_place:
            families[by_place[place]].add(summary.name)
    return families


def _rank(
    summary: ProcessSummary,
    place: Place,
    account: Account | None,
    fingerprints: tuple[str, ...],
    deviates: bool,
) -> Rank:
    return Rank(
        rank=place.rank,
        restart=place.restart,
        host=place.host,
        process=summary.name,
        steps=summary.steps,
        outcome=account.verdict.outcome if account is not None else Outcome.UNKNOWN,
        bytes_per_step=account.verdict.bytes_per_step if account is not None else _NOTHING,
        last_rss_bytes=summary.last_rss_bytes,
        peak_rss_bytes=summary.peak_rss_bytes,
        fingerprints=fingerprints,
        deviates=deviates,
    )


def _band(run: RunSeries, latest: Mapping[int, str]) -> tuple[str, tuple[BandPoint, ...]]:
    for metric in (IN_USE, RSS):
        series: dict[int, Series] = {
            rank: run.series[metric, process]
            for rank, process in latest.items()
            if (metric, process) in run.series
        }
        if points := band_over(series):
            return metric, points
    return "", ()


def _says(ranks: Sequence[Rank], standing_out: tuple[int, ...], common: tuple[str, ...]) -> str:
    count = len({one.rank for one in ranks})
    growing = [one for one in ranks if one.outcome in _GROWS]
    if not growing:
        return f"None of the {count} ranks grows."
    if standing_out:
        rates = {one.rank: one.bytes_per_step.value for one in ranks if one.deviates}
        others = [one.bytes_per_step.value for one in ranks if one.rank not in standing_out]
        left = count - len(standing_out)
        rest = "other rank" if left == 1 else f"{left} other ranks"
        said = f"{_named(standing_out)} {'deviate' if len(standing_out) > 1 else 'deviates'}: " + (
            f"{_between([rates[rank] for rank in standing_out])}, and the {rest} "
            f"{_between(others)}."
        )
    elif len({one.rank for one in growing}) == count:
        rates_of_all = [one.bytes_per_step.value for one in growing]
        said = f"All {count} ranks grow alike: {_between(rates_of_all)}."
    else:
        numbers = tuple(dict.fromkeys(one.rank for one in growing))
        said = f"{len(numbers)} of {count} ranks grow, none clearly faster than the rest: "
        said += f"{_named(numbers)}."
    if common:
        said += f" What is kept is the same in all of them ({', '.join(common)})."
    return said


def _named(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"Rank {ranks[0]}"
    shown = ", ".join(map(str, ranks[:_MOST_NAMED]))
    more = len(ranks) - _MOST_NAMED
    return f"Ranks {shown}" + (f" and {more} more" if more > 0 else "")


def _between(rates: Sequence[float]) -> str:
    low, high = min(rates), max(rates)
    if len(rates) == 1 or high - low < 0.02 * abs(high):
        return text.rate(high)
    return text.rate_between(low, high)
