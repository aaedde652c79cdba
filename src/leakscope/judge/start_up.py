"""Accounts of a run by the clock in, the same out, less what a program says that has hardly begun:
what it loads to work with is no growth, and what was over at once is not steady."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from leakscope import text
from leakscope.judge.account import Account
from leakscope.judge.pages import grows
from leakscope.judge.series import RSS, RunSeries
from leakscope.model import Outcome, Verdict

_FEWEST_TICKS = 20
"""By the clock, where only resident memory was read often enough: 0.2 s of the program's own time,
less what our looks and its imports took. A program that leaked 4 MiB a tick was called steady once,
after ten of them. No experiment chose it."""
_STARTS_UP_WITHIN_S = 60.0
"""What fails so early, and has not made a step, was loading its data and its model, as far as
anybody can tell: one that failed at its first batch was a leak of the tables it had read. A choice;
what runs for longer is judged however it ends."""
_TOO_SHORT = "The program was over before its memory could be followed; give it more to do."

_UNCAUGHT = 1
"""The exit status that Python has after an exception."""
_LIMITS = ("limit.address_space_bytes", "limit.data_bytes")
_UNLIMITED = "unlimited"
"""With one of these a program ends by an exception where its memory does."""


def judged_after_start(run: RunSeries, accounts: Sequence[Account]) -> list[Account]:
    """The same accounts, undecided where the run was hardly more than its start."""
    has_failed = _has_failed_early(run)
    is_short = run.axis.last_step < _FEWEST_TICKS
    judged = []
    for account in accounts:
        outcome, metric = account.verdict.outcome, account.verdict.series.metric
        if has_failed and grows(account.verdict):
            judged.append(_undecided(account, _failed(account.verdict)))
        elif is_short and outcome is Outcome.STEADY and metric == RSS:
            judged.append(_undecided(account, _TOO_SHORT))
        else:
            judged.append(account)
    return judged


def _undecided(account: Account, because: str) -> Account:
    verdict = replace(account.verdict, outcome=Outcome.UNKNOWN, because=because)
    others = (one for one in account.verdicts if one.series != verdict.series)
    return account._replace(verdict=verdict, verdicts=(verdict, *others))


def _failed(verdict: Verdict) -> str:
    return (
        f"The program failed before it made a step: the {text.size(verdict.grown_bytes)} that it "
        "took until then may be what it needs to begin. Repair it, and run it again."
    )


def _has_failed_early(run: RunSeries) -> bool:
    """Has an exception ended the program before a step? Not where memory may have been the reason:
    that is what the run is about."""
    recording = run.recording
    facts = recording.run.machine.facts
    is_bounded = any(facts.get(name, _UNLIMITED) != _UNLIMITED for name in _LIMITS)
    if run.has_steps or is_bounded or recording.black_boxes:
        return False
    main = {process for process, start in recording.starts.items() if start.kind == "main"}
    failed = any(
        end.exit_code == _UNCAUGHT for process, end in recording.ends.items() if process in main
    )
    return failed and run.axis.last_step * (run.axis.tick_s or 0.0) < _STARTS_UP_WITHIN_S
