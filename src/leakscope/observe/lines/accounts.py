"""Whole calls, measured beside their lines: what is estimated has to come to that."""

from __future__ import annotations

from leakscope.observe.lines.tally import Tally

_ACCOUNT_NS = 1_000_000
"""For measuring whole calls, before it counts against 1 % of the time."""


_CALLS_FOR_AN_ESTIMATE = 8
"""Of those that come from outside; with fewer, all of them must have been measured."""


class Account:
    """What whole calls took that came from outside, before their variables gave back."""

    __slots__ = ("_n_bytes", "_n_calls", "_n_measured", "_spent_ns")

    def __init__(self) -> None:
        self._n_bytes = self._n_calls = self._n_measured = self._spent_ns = 0

    def wants(self, cost_ns: int, inside_ns: int) -> bool:
        """Whether the call that begins is to be measured."""
        self._n_calls += 1
        is_wanted = self._spent_ns <= _ACCOUNT_NS + inside_ns // 100
        if is_wanted:
            self._spent_ns += 2 * cost_ns
        return is_wanted

    def add(self, n_bytes: int) -> None:
        self._n_bytes += n_bytes
        self._n_measured += 1

    def total(self) -> float | None:
        """Of all calls; None where too few were measured."""
        is_all = self._n_measured == self._n_calls
        if not self._n_measured or not (is_all or self._n_measured >= _CALLS_FOR_AN_ESTIMATE):
            return None
        return self._n_bytes / self._n_measured * self._n_calls


Opened = list[tuple[Tally, Account, int]]
"""The accounts of a call that has begun, with what was in use then."""


def accounts_for(tallies: list[Tally]) -> dict[str, Account]:
    """By gauge. Resident memory is read for its peaks only."""
    return {tally.name: Account() for tally in tallies if tally.name != "resident"}


def open_accounts(accounts: dict[str, Account], tallies: list[Tally], inside_ns: int) -> Opened:
    opened = []
    for tally in tallies:
        account = accounts.get(tally.name)
        if account is not None and account.wants(tally.cost_ns, inside_ns):
            opened.append((tally, account, tally.read()[0]))
    return opened


def close_accounts(opened: Opened, given_back: dict[str, int]) -> None:
    for tally, account, before in opened:
        account.add(tally.read()[0] - before - given_back.get(tally.name, 0))
