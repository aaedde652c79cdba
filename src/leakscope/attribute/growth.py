"""The growth of a run, process by process, with what explains it; and when that proves a leak."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from leakscope.attribute.crowd import explain_crowd
from leakscope.attribute.measured import CLOCK, looked_at
from leakscope.attribute.suspect import Suspect
from leakscope.attribute.suspects import Explained, explain_growth, sources_for
from leakscope.judge.account import Account
from leakscope.judge.overall import Overall
from leakscope.judge.series import BLOCKS, RESERVED, RSS
from leakscope.model import Outcome, Shape, Verdict
from leakscope.record.reader import Recording

_PROVEN_SHARE = 0.5
"""Holders that were seen to grow must keep so much of the growth before it is called a leak:
statistics alone may only say that it grows."""

_NOT_KEPT = (Shape.FRAGMENTATION,)
"""Growth of what the allocator holds: nothing of the program's is kept, so nobody holds it."""


class Attribution(NamedTuple):
    """What is known about the growth of each process that grows."""

    accounts: tuple[Account, ...]
    explained: dict[str, Explained]

    def total(self) -> float:
        return sum(account.verdict.bytes_per_step.value for account in self.accounts)


def attribute(
    recording: Recording, overall: Overall, *, is_by_holders: bool = False
) -> Attribution:
    """`is_by_holders`: it was holders that decided how fast it grows, and not counters."""
    accounts = tuple(overall.growing())
    explained = {}
    crowds = {crowd.process: crowd for crowd in overall.crowds}
    for account in accounts:
        verdict, shape = account.verdict, account.verdict.shape
        # Malloc's counter scatters then, or it would grow as well: its slope is no growth.
        is_of_blocks = (
            verdict.series.metric == BLOCKS and looked_at(recording, account.process) != CLOCK
        )
        if account.process in crowds:
            crowd = crowds[account.process]
            sources = sources_for(recording, crowd.parent)
            explained[account.process] = explain_crowd(recording, crowd, sources)
            continue
        if shape in _NOT_KEPT:
            explained[account.key] = Explained(account.process, ())
            continue
        explained[account.key] = explain_growth(
            recording,
            account.process,
            is_copy_on_write=shape is Shape.COPY_ON_WRITE,
            is_resident=verdict.series.metric == RSS,
            per_step=verdict.bytes_per_step.value if is_by_holders or is_of_blocks else None,
            device=account.device,
            block_bytes=account.block_bytes,
            is_reserved=verdict.series.metric == RESERVED,
        )
    return Attribution(accounts, explained)


def prove(overall: Overall, attribution: Attribution) -> Overall:
    """The same answer, called a leak where holders account for the growth."""
    proven = {
        key: explained
        for key, explained in attribution.explained.items()
        if proven_share(explained) >= _PROVEN_SHARE
    }
    if not proven:
        return overall
    accounts = tuple(
        account._replace(
            verdict=_as_leak(account.verdict),
            verdicts=(_as_leak(account.verdicts[0]), *account.verdicts[1:]),
        )
        if account.key in proven
        else account
        for account in overall.accounts
    )
    keys = {account.verdict.series for account in accounts if account.key in proven}
    verdicts = tuple(
        _as_leak(verdict) if verdict.series in keys or is_sum else verdict
        for is_sum, verdict in _with_sum(overall)
    )
    return overall._replace(outcome=Outcome.LEAK, verdicts=verdicts, accounts=accounts)


def proven_share(explained: Explained) -> float:
    """Of the growth: what holders keep of which nothing says that they will stop."""
    return sum(suspect.share for suspect in explained.suspects if is_evidence(suspect))


def is_evidence(suspect: Suspect) -> bool:
    return not suspect.is_bounded


def _as_leak(verdict: Verdict) -> Verdict:
    return replace(verdict, outcome=Outcome.LEAK)


def _with_sum(overall: Overall) -> list[tuple[bool, Verdict]]:
    """The verdicts, and which of them is the sum over processes."""
    of_accounts = {verdict.series for one in overall.accounts for verdict in one.verdicts}
    return [(verdict.series not in of_accounts, verdict) for verdict in overall.verdicts]
