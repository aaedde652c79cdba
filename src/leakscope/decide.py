"""The one place where the outcome of a process is made, from its numbers and its snapshots.

numbers    snapshots                                          outcome
grows      holders without a limit keep half of it or more    LEAK
grows      garbage that the collector will free is half       STEADY
grows      anything else                                      GROWING
undecided  a holder grew in every snapshot, and still does    LEAK
steady     the same, more slowly than the numbers can show    LEAK
otherwise                                                     as the numbers say
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from msgspec.structs import replace

from leakscope import text
from leakscope.attribute.suspect import Suspect
from leakscope.attribute.suspects import Explained
from leakscope.judge.account import Account
from leakscope.judge.overall import Overall, conclude
from leakscope.judge.series import RunSeries
from leakscope.model import HoldingKind, Outcome, Rate, Shape, Verdict

_PROVEN_SHARE = 0.5
"""Of the growth: holders must keep so much of it before it is called a leak."""
_FEWEST_SNAPSHOTS = 3
"""In which a holder must have grown each time, where the numbers do not show growth themselves."""
_SLOWED = 2.0
"""Growth that has slowed down by more than this factor, from its average to the last stretch, may
come to rest: what fills up does, and what follows records (a logarithm, looked at at doublings)."""
_SMALLEST_RATE = 1024.0
"""Bytes per step: a slower holder is a history that people mean to keep."""
_SMALLEST_TOTAL = float(256 << 10)
"""Bytes from the first snapshot to the end of the run, likewise (decisions/0006)."""


def decide(
    run: RunSeries,
    judged: Overall,
    explained: Mapping[str, Explained],
    names: dict[str, str],
) -> Overall:
    """The final answer: the numbers' own, changed where snapshots know better."""
    accounts = tuple(
        _decided(account, explained[account.key]) if account.key in explained else account
        for account in judged.accounts
    )
    if accounts == judged.accounts:
        return judged
    return conclude(run, accounts, names)._replace(crowds=judged.crowds)


def _decided(account: Account, explained: Explained) -> Account:
    verdict = account.verdict
    if verdict.outcome is Outcome.GROWING:
        if _kept_share(explained) >= _PROVEN_SHARE:
            return _with(account, replace(verdict, outcome=Outcome.LEAK))
        if _garbage_share(explained) >= _PROVEN_SHARE:
            return _with(account, _collected_later(verdict, explained))
        return account
    certain = [one for one in explained.suspects if _is_certain(one, verdict)]
    if verdict.outcome is Outcome.LEAK or not certain or account.device is not None:
        return account
    return _with(account, _seen_to_grow(verdict, certain))


def _kept_share(explained: Explained) -> float:
    """Of the growth: what holders keep of which nothing says that they will stop."""
    return sum(
        suspect.share
        for suspect in explained.suspects
        if not suspect.is_bounded and suspect.holding.kind != HoldingKind.GARBAGE
    )


def _garbage_share(explained: Explained) -> float:
    return sum(
        suspect.share
        for suspect in explained.suspects
        if suspect.holding.kind == HoldingKind.GARBAGE
    )


def _is_certain(suspect: Suspect, verdict: Verdict) -> bool:
    """Has it grown in every snapshot until late in the run, by enough, without slowing down, and
    by less than the numbers show?"""
    holding = suspect.holding
    if suspect.is_bounded or holding.kind == HoldingKind.GARBAGE or suspect.named is None:
        return False
    rates = [
        (after - before) / (step - since)
        for (since, before), (step, after) in pairwise(holding.sizes)
        if step > since
    ]
    if len(rates) + 1 < _FEWEST_SNAPSHOTS or min(rates) <= 0:
        return False
    rate = rate_of(suspect)
    total = rate * (verdict.to_step - holding.sizes[0][0])
    if rate < _SMALLEST_RATE or total < _SMALLEST_TOTAL or rates[-1] * _SLOWED < rate:
        return False
    if 2 * holding.sizes[-1][0] < verdict.to_step:
        return False  # nothing was seen of the second half
    is_open = verdict.outcome is Outcome.UNKNOWN
    return is_open or rate < verdict.smallest_visible_bytes_per_step


def rate_of(suspect: Suspect) -> float:
    """Bytes per step, from the first snapshot to the last."""
    (since, before), (until, after) = suspect.holding.sizes[0], suspect.holding.sizes[-1]
    return (after - before) / max(until - since, 1)


def _seen_to_grow(verdict: Verdict, certain: list[Suspect]) -> Verdict:
    largest = max(certain, key=rate_of)
    sizes, rate = largest.holding.sizes, sum(map(rate_of, certain))
    (first, before), (last, after) = sizes[0], sizes[-1]
    name = largest.named.name if largest.named is not None else largest.holding.path[-1].type
    because = (
        f"`{name}` grew in every snapshot: {text.size(before)} at step {first:,}, "
        f"{text.size(after)} at step {last:,}. The samples alone do not show "
        f"{text.size(rate)} per step."
    )
    return replace(
        verdict,
        outcome=Outcome.LEAK,
        shape=Shape.LINEAR,
        because=because,
        bytes_per_step=Rate(rate, rate, rate),
        from_step=float(first),
        grown_bytes=rate * max(verdict.to_step - first, 1.0),
    )


def _collected_later(verdict: Verdict, explained: Explained) -> Verdict:
    waiting = [one for one in explained.suspects if one.holding.kind == HoldingKind.GARBAGE]
    size = sum(one.holding.sizes[-1][1] for one in waiting)
    because = (
        f"Garbage in reference cycles grows by {text.size(verdict.bytes_per_step.value)} per step "
        f"until the next full collection frees it ({text.size(size)} at the last snapshot). "
        "No object that is in use grows."
    )
    return replace(verdict, outcome=Outcome.STEADY, shape=Shape.SAW_TOOTH, because=because)


def _with(account: Account, verdict: Verdict) -> Account:
    others = (one for one in account.verdicts if one.series != verdict.series)
    return account._replace(verdict=verdict, verdicts=(verdict, *others))
