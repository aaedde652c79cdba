"""Whole calls, measured beside their lines: what is estimated has to come to that."""

from __future__ import annotations

from leakscope.observe.line_tally import Tally

_ACCOUNT_NS = 1_000_000
"""For measuring whole calls, before it counts against 2 % of the time."""


class Account:
    """What whole calls took that came from outside: the lines have to come to the same."""

    __slots__ = ("given_back", "is_kept", "n_bytes", "spent_ns")

    def __init__(self) -> None:
        self.is_kept = True
        """Every such call was measured. One that comes and goes too fast for that is not."""
        self.n_bytes = 0
        self.given_back = 0
        """By the variables, in the returns that were measured."""
        self.spent_ns = 0


Opened = list[tuple[Tally, Account, int]]
"""The accounts of a call that has begun, with what was in use then."""


def accounts_for(tallies: list[Tally]) -> dict[str, Account]:
    """By gauge. Resident memory is read for its peaks only."""
    return {tally.name: Account() for tally in tallies if tally.name != "resident"}


def open_accounts(accounts: dict[str, Account], tallies: list[Tally], inside_ns: int) -> Opened:
    opened = []
    for tally in tallies:
        account = accounts.get(tally.name)
        if account is not None and account.is_kept:
            account.spent_ns += 2 * tally.cost_ns
            account.is_kept = account.spent_ns <= _ACCOUNT_NS + inside_ns // 50
            opened.append((tally, account, tally.read()[0]))
    return opened


def close_accounts(opened: Opened) -> None:
    for tally, account, before in opened:
        account.n_bytes += tally.read()[0] - before
