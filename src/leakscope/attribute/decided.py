"""Runs whose counters could not decide, decided by a holder that was seen to grow at every look.

A step that makes and drops megabytes hides a leak of kilobytes from every counter. A list that has
one entry more after each step, look after look, that no statement of the program ever empties, is
no matter of statistics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from msgspec.structs import replace

from leakscope import text
from leakscope.attribute.device import bytes_on
from leakscope.attribute.guard import is_ever_emptied
from leakscope.attribute.measured import BLOCK_BYTES, CLOCK, looked_at
from leakscope.attribute.recounted import FOLLOWED
from leakscope.attribute.suspect import Suspect
from leakscope.attribute.suspects import sources_for, suspects_of
from leakscope.judge.account import Account
from leakscope.judge.overall import Overall
from leakscope.judge.series import BLOCKS, IN_USE, RSS
from leakscope.model import Outcome, Rate, Shape, Verdict
from leakscope.record.reader import Recording

_FEWEST_COUNTS = 5
"""Of a first look and two windows, each with two."""
_FEWEST_WHERE_COUNTERS_AGREE = 3
_AGREES = 1.5
"""Python's blocks rise evenly, and only whether they are garbage is open; or malloc's counter rises
and only how steadily is: a holder that takes what they rise by answers that, with one look. No
experiment has scanned the factor."""
_ALIKE = 2.0
"""The fastest and the slowest stretch between looks differ by no more: it does not slow down."""
_ENTRIES_BETWEEN = 2.0
"""To be expected between two counts that are compared. A choice."""
_SMALLEST_RATE = 1024.0
_SMALLEST_TOTAL = float(256 << 10)
"""Less may be meant: a history of numbers is what people keep (see judge/overall.py)."""
# Chosen by reason and seen to work on three programs; no experiment has scanned them.
_OF_THE_PREDICTED = 0.5
_LAST_PART = 0.2
_FEWEST_ROWS = 3
_FAR_APART = 0.5
"""Rows of the first and the last fifth since the first look, or the three nearest to them: in a run
of two seconds there may be six in all. Their middles must be half of that time apart."""

_SCATTERED = "The counters scatter too much to show it by themselves."
_AS_BLOCKS = "Python's blocks rise as fast as that, so they are not garbage."
_AS_LIVE = "Memory in use rises as fast as that, if not evenly."


class Growth(NamedTuple):
    """What a holder keeps, from its first look to the last step."""

    per_step: Rate
    from_step: int
    total: float


def decide(overall: Overall, recording: Recording, last_step: int) -> Overall:
    """The same answer, or GROWING where a holder shows what the counters could not."""
    growing = overall.growing()
    if growing and not (len(growing) == 1 and _is_of_pages_only(growing[0])):
        return overall
    proven = [
        (growth, suspect, account)
        for account in growing or overall.accounts
        for suspect, growth in _certain(account, recording, last_step)
    ]
    if not proven:
        return overall
    growth, suspect, account = max(proven, key=lambda one: one[0].per_step.value)
    why = _SCATTERED
    if _is_what_live_memory_rises_by(account, suspect):
        why = _AS_LIVE
    if _is_what_blocks_rise_by(account, suspect):
        why = _AS_BLOCKS
    undecided = (_of_malloc(account) if growing else None) or account.verdict
    verdict = _grows(undecided, growth, suspect, last_step, why)
    accounts = tuple(
        one._replace(verdict=verdict, verdicts=(verdict, *_others(one, verdict)))
        if one is account
        else one
        for one in overall.accounts
    )
    verdicts = (verdict, *(one for one in overall.verdicts if one.series != verdict.series))
    return Overall(Outcome.GROWING, verdict.because, verdicts, accounts)


def _is_of_pages_only(account: Account) -> bool:
    """Resident memory grows, and nobody can say by how much what is alive does: of a holder of
    kilobytes and the freed megabytes that lie between them, it is the holder that matters."""
    verdict = account.verdict
    return verdict.series.metric == RSS and verdict.shape is not Shape.FRAGMENTATION


def _of_malloc(account: Account) -> Verdict | None:
    return next((one for one in account.verdicts if one.series.metric == IN_USE), None)


def _others(account: Account, verdict: Verdict) -> tuple[Verdict, ...]:
    return tuple(one for one in account.verdicts if one.series != verdict.series)


def _certain(
    account: Account, recording: Recording, last_step: int
) -> Iterator[tuple[Suspect, Growth]]:
    process = account.process
    if looked_at(recording, process) in ("", CLOCK):
        return  # a tick is no step: nothing has to recur with it
    sources = sources_for(recording, process)
    for suspect in suspects_of(recording, process):
        is_agreed = _is_what_blocks_rise_by(account, suspect)
        is_alike = is_agreed or _is_what_live_memory_rises_by(account, suspect)
        fewest = _FEWEST_WHERE_COUNTERS_AGREE if is_alike else _FEWEST_COUNTS
        growth = _steady_growth(suspect, last_step, account.device, fewest)
        if growth is None or not _is_certain(suspect, sources):
            continue
        # Blocks that agree were judged to the last step already, and so was what has been counted.
        is_followed = bool(suspect.later) and suspect.later[-1][0] >= FOLLOWED * last_step
        if (
            is_agreed
            or is_followed
            or not _is_contradicted(growth, suspect, recording, last_step, account.device)
        ):
            yield suspect, growth


def _is_what_blocks_rise_by(account: Account, suspect: Suspect) -> bool:
    """And what is open is only whether they are garbage: no full collection has told."""
    verdict = account.verdict
    is_open = verdict.outcome is Outcome.UNKNOWN and verdict.series.metric == BLOCKS
    return is_open and _agrees(verdict, suspect)


def _is_what_live_memory_rises_by(account: Account, suspect: Suspect) -> bool:
    """And it does rise, only not evenly enough to be called growth."""
    live = _of_malloc(account)
    if live is None or live.outcome is not Outcome.UNKNOWN or live.bytes_per_step.low <= 0:
        return False
    return _agrees(live, suspect)


def _agrees(verdict: Verdict, suspect: Suspect) -> bool:
    rate = suspect.holding.bytes_each * suspect.count_per_step
    rises = verdict.bytes_per_step.value
    return rises > 0 and 1 / _AGREES <= rate / rises <= _AGREES


def _is_certain(suspect: Suspect, sources: Mapping[str, str]) -> bool:
    if suspect.holding.kind != "container" or suspect.is_bounded or suspect.named is None:
        return False
    return suspect.keeper is not None and not is_ever_emptied(sources, suspect.named)


def _steady_growth(
    suspect: Suspect, last_step: int, device: str | None, fewest_counts: int
) -> Growth | None:
    """How fast it grows, if it has grown evenly between all its looks, and by enough."""
    holding, later = suspect.holding, suspect.later
    if len(holding.counts) + len(later) < fewest_counts:
        return None
    # From look to look; the few steps of a window are too short to tell a rate from.
    looks = _far_apart(sorted({holding.counts[0], *holding.counts[1::2], *later}))
    rates = [
        bytes_on(holding, device) * (after - before) / (step - since)
        for (since, before), (step, after) in pairwise(looks)
        if step > since
    ]
    if not rates or min(rates) <= 0 or max(rates) > _ALIKE * min(rates):
        return None
    (first, before), (last, after) = looks[0], looks[-1]
    rate = bytes_on(holding, device) * (after - before) / (last - first)
    total = rate * (last_step - first)
    if rate < _SMALLEST_RATE or total < _SMALLEST_TOTAL:
        return None
    one = rate / (after - before)  # more or less, by the steps at which it was counted
    return Growth(Rate(rate, min(*rates, rate - one), max(*rates, rate + one)), first, total)


def _far_apart(counts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those with enough steps between them for some entries: what is kept once in fifty steps has
    none more after twenty."""
    (first, before), (last, after) = counts[0], counts[-1]
    least = _ENTRIES_BETWEEN * (last - first) / max(after - before, 1)
    kept = counts[:1]
    for step, count in counts[1:]:
        if step - kept[-1][0] >= least:
            kept.append((step, count))
    return kept


def _is_contradicted(
    growth: Growth, suspect: Suspect, recording: Recording, last_step: int, device: str | None
) -> bool:
    """Do the counters say that it went away again after the looks? They scatter, or they would
    have decided: only a fall by more than that counts."""
    columns = recording.columns(
        suspect.holding.process, looked_at(recording, suspect.holding.process)
    )
    of_python = suspect.holding.parts.get("python", 0.0) > suspect.holding.bytes_each / 2
    name, size = ("blocks_count", BLOCK_BYTES) if of_python else ("in_use_bytes", 1.0)
    if device is not None:
        name, size = f"{device}.allocated_bytes", 1.0
    rows = [
        (step, value * size)
        for step, value in zip(columns.get("step", ()), columns.get(name, ()), strict=False)
        if step is not None and value is not None
    ]
    rows = [row for row in rows if growth.from_step <= row[0] <= last_step]
    span = _LAST_PART * (last_step - growth.from_step)
    count = max(_FEWEST_ROWS, sum(step <= growth.from_step + span for step, _ in rows))
    early = rows[:count]
    late = rows[-max(_FEWEST_ROWS, sum(step >= last_step - span for step, _ in rows)) :]
    apart = median(step for step, _ in late) - median(step for step, _ in early) if rows else 0
    if len(rows) < 2 * _FEWEST_ROWS or apart < _FAR_APART * (last_step - growth.from_step):
        return True  # nothing to tell it by
    before, after = [value for _, value in early], [value for _, value in late]
    spread = max(_spread(before), _spread(after))
    predicted = growth.per_step.value * apart
    return median(after) - median(before) < _OF_THE_PREDICTED * predicted - spread


def _spread(values: list[float]) -> float:
    middle = median(values)
    return median([abs(value - middle) for value in values])


def _grows(verdict: Verdict, growth: Growth, suspect: Suspect, last_step: int, why: str) -> Verdict:
    counts = suspect.holding.counts
    rate = text.size(growth.per_step.value)
    return replace(
        verdict,
        outcome=Outcome.GROWING,
        shape=Shape.LINEAR,
        because=(
            f"What is kept grows by {rate} per step: a holder had {counts[0][1]:,} entries at step "
            f"{counts[0][0]:,} and {counts[-1][1]:,} at step {counts[-1][0]:,}, more at every look "
            f"between. {why}"
        ),
        bytes_per_step=growth.per_step,
        from_step=float(growth.from_step),
        to_step=float(last_step),
        grown_bytes=growth.total,
    )
