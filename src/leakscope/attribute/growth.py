"""The growth of a run, process by process, with what explains it. Never decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from leakscope.attribute.crowd import explain_crowd
from leakscope.attribute.suspect import Suspect
from leakscope.attribute.suspects import Explained, explain_copies, explain_growth, sources_for
from leakscope.heap.evidence import NO_EVIDENCE, Evidence
from leakscope.judge.account import Account
from leakscope.judge.overall import Overall
from leakscope.judge.series import BLOCKS, IN_USE, RunSeries
from leakscope.model import Outcome, Rate, Shape

_NOT_KEPT = (Shape.FRAGMENTATION,)
"""Growth of the allocator's cache: nothing of the program's is kept, so nobody holds it."""


class Attribution(NamedTuple):
    """What is known about the growth of each process."""

    accounts: tuple[Account, ...]
    explained: Mapping[str, Explained]

    def total(self) -> float:
        return sum(account.verdict.bytes_per_step.value for account in self.accounts)

    def of_growing(self) -> tuple[Explained, ...]:
        """What explains each account that grows."""
        return tuple(self.explained[account.key] for account in self.accounts)

    def suspects(self) -> tuple[Suspect, ...]:
        return tuple(suspect for one in self.of_growing() for suspect in one.suspects)


def attribute(
    run: RunSeries, overall: Overall, evidence: Mapping[str, Evidence]
) -> dict[str, Explained]:
    """What explains the growth of each account, by its key, whether or not it was found to grow."""
    recording = run.recording
    crowds = {crowd.process: crowd for crowd in overall.crowds}
    explained = {}
    for account in overall.accounts:
        shape = account.verdict.shape
        if account.process in crowds:
            crowd = crowds[account.process]
            sources = sources_for(recording, crowd.parent)
            explained[account.key] = explain_crowd(recording, crowd, sources)
        elif shape in _NOT_KEPT:
            explained[account.key] = Explained(account.process, ())
        elif shape is Shape.COPY_ON_WRITE:
            explained[account.key] = explain_copies(recording, account.process)
        else:
            seen = evidence.get(account.process, NO_EVIDENCE)
            explained[account.key] = explain_growth(
                recording,
                account.process,
                seen,
                grown_bytes=_grown_bytes(run, account, seen),
                device=account.device,
            )
    return explained


def with_block_sizes(overall: Overall, evidence: Mapping[str, Evidence]) -> Overall:
    """The same with rates by the size of the small objects that snapshots saw come.

    The counters say how many there are, not how large they are."""
    accounts = tuple(
        _resized(account, evidence.get(account.process, NO_EVIDENCE))
        for account in overall.accounts
    )
    changed = {one.verdict.series: one.verdict for one in accounts}
    verdicts = tuple(changed.get(one.series, one) for one in overall.verdicts)
    return overall._replace(accounts=accounts, verdicts=verdicts)


def _resized(account: Account, evidence: Evidence) -> Account:
    is_live = account.verdict.series.metric in (IN_USE, BLOCKS) and account.device is None
    size = evidence.small_object_bytes() if is_live else None
    if size is None:
        return account
    only_blocks = account.verdict.series.metric == BLOCKS
    in_use = 0.0 if only_blocks else evidence.grown("in_use_bytes")
    blocks = evidence.grown("blocks_count")
    times = (in_use + blocks * size) / (in_use + blocks * account.block_bytes)
    verdict = account.verdict
    rate = verdict.bytes_per_step
    verdict = replace(
        verdict,
        bytes_per_step=Rate(rate.value * times, rate.low * times, rate.high * times),
        grown_bytes=verdict.grown_bytes * times,
    )
    others = (one for one in account.verdicts if one.series != verdict.series)
    return account._replace(verdict=verdict, verdicts=(verdict, *others), block_bytes=size)


def _grown_bytes(run: RunSeries, account: Account, evidence: Evidence) -> float:
    """Growth from the first snapshot to the last: as the numbers have it, where they show growth,
    for what a program takes at once while it warms up is no part of that; else by the counters."""
    verdict = account.verdict
    if verdict.outcome is Outcome.GROWING and len(evidence.snapshots) > 1:
        moments = [evidence.snapshots[0].at.mono_ns, evidence.snapshots[-1].at.mono_ns]
        first, last = run.axis_of(account.process).at(np.array(moments, dtype=np.float64))
        return float(last - first) * verdict.bytes_per_step.value
    if account.device is not None:
        return evidence.grown(f"{account.device}.allocated_bytes")
    return evidence.grown_live(account.block_bytes)
