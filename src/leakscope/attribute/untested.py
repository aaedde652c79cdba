"""Growth that may be garbage: Python's blocks alone, no full collection, and nobody who keeps it.

Objects in cycles wait for a full collection, which comes after tens of thousands of them, and a
closer look makes more of them wait: what it thaws counts as old, whatever its age. A plain program
of a second that parses trees had half as many blocks again in the end, kept nothing, and was said
to grow (zoo/cycles-in-plain-python, one run in twelve).
"""

from __future__ import annotations

from msgspec.structs import replace

from leakscope import text
from leakscope.attribute.growth import Attribution
from leakscope.judge.account import Account
from leakscope.judge.overall import Overall
from leakscope.model import Outcome, Verdict

_SOME = 0.1
"""Of the growth: who keeps so much of it is told of, and what holders keep is no garbage."""


def doubt(overall: Overall, attribution: Attribution) -> tuple[Overall, Attribution]:
    """The same, or UNKNOWN where all that grows may be garbage."""
    growing = {account.key: account for account in attribution.accounts}
    if not growing or not all(_may_be_garbage(one, attribution) for one in growing.values()):
        return overall, attribution
    accounts = tuple(_undecided(one) if one.key in growing else one for one in overall.accounts)
    changed = {one.verdict.series: one.verdict for one in accounts if one.key in growing}
    verdicts = tuple(changed.get(one.series, one) for one in overall.verdicts)
    because = next(iter(changed.values())).because
    undecided = overall._replace(
        outcome=Outcome.UNKNOWN, because=because, verdicts=verdicts, accounts=accounts
    )
    return undecided, Attribution((), {})


def _may_be_garbage(account: Account, attribution: Attribution) -> bool:
    explained = attribution.explained.get(account.key)
    return account.is_untested and (explained is None or explained.share < _SOME)


def _undecided(account: Account) -> Account:
    verdict = _as_unknown(account.verdict)
    return account._replace(verdict=verdict, verdicts=(verdict, *account.verdicts[1:]))


def _as_unknown(verdict: Verdict) -> Verdict:
    rate = text.size(verdict.bytes_per_step.value)
    because = (
        f"Python's blocks rise by about {rate} per step, but nobody was seen to keep them, and no "
        "full garbage collection has run that would tell garbage from what is kept: run on until "
        "one has, or call gc.collect() now and then."
    )
    return replace(verdict, outcome=Outcome.UNKNOWN, because=because)
