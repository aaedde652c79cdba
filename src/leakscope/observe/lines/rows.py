"""A ledger in, rows out: sums, estimates, and what variables gave back, put at the lines they are
from."""

from __future__ import annotations

import linecache
from collections.abc import Iterable

from leakscope.model import LineRow
from leakscope.observe.lines.calls import Watched
from leakscope.observe.lines.ledger import Ledger
from leakscope.observe.lines.tally import Tally

_WORTH_A_CORRECTION = 0.02
"""Of what was estimated: below that, lines that keep nothing would be given a little of it."""


class _Side:
    """The memory of the host or of the devices."""

    def __init__(self, ledger: Ledger, watched: Watched, tallies: Iterable[Tally]) -> None:
        self._ledger = ledger
        self._watched = watched
        self._tallies = tuple(tallies)
        self._levels = tuple(tally for tally in self._tallies if tally.name != "resident")
        self._changes: dict[int, float] = {}
        for slot in watched.line_of:
            self._changes[slot] = sum(
                tally.total(slot, self._turns(slot))[0] for tally in self._levels
            )
        for tally in self._levels:
            account = watched.accounts.get(tally.name)
            whole = account.total() if account is not None else None
            if whole is not None:
                self._bring_to_account(tally, whole)
        self._given_back = self._give_back()

    def _bring_to_account(self, tally: Tally, whole: float) -> None:
        """Whole calls were measured too. What the estimates miss of that, or have too much, is
        theirs: a list that grows now and then is rarely drawn, or drawn as if it always grew."""
        said = 0.0
        guessed: dict[int, float] = {}
        for slot in self._watched.line_of:
            turns = self._turns(slot)
            said += tally.total(slot, turns)[0] + tally.total_inside(slot, turns)
            guessed[slot] = abs(tally.estimated(slot, turns))
        uncertain, missed = sum(guessed.values()), whole - said
        if abs(missed) > _WORTH_A_CORRECTION * uncertain > 0:
            for slot, part in guessed.items():
                self._changes[slot] += missed * part / uncertain

    def _turns(self, slot: int) -> int:
        return self._ledger.counts[slot] + self._ledger.resumptions[slot]

    def _give_back(self) -> dict[int, float]:
        """By line, what variables gave back: at the lines that store them as far as those took so
        much; a list is filled elsewhere, so the rest at whatever lines took. What is left then was
        taken outside the function."""
        given_back: dict[int, float] = {}
        for name, variable in self._watched.variables.items():
            returns = self._watched.returns
            rest = -sum(tally.total(variable, returns)[0] for tally in self._levels)
            stored_at = self._watched.stored_at[name]
            for slots in (stored_at, tuple(self._changes)):
                taken = {
                    slot: max(self._changes[slot] - given_back.get(slot, 0.0), 0.0)
                    for slot in slots
                }
                whole = sum(taken.values())
                share = min(rest / whole, 1.0) if whole > 0 and rest > 0 else 0.0
                for slot, n_bytes in taken.items():
                    given_back[slot] = given_back.get(slot, 0.0) + n_bytes * share
                rest -= whole * share
            given_back[stored_at[0]] = given_back.get(stored_at[0], 0.0) + rest
        return given_back

    def given_back(self, slot: int) -> int:
        return round(self._given_back.get(slot, 0.0))

    def kept(self, slot: int) -> int | None:
        """None where no execution was measured: that is not the same as none kept."""
        is_seen = any(tally.has_seen(slot) for tally in self._levels if not tally.is_paced) or (
            all(tally.has_seen(slot) for tally in self._levels)
        )
        if not self._levels or (self._turns(slot) and not is_seen):
            return None
        return round(self._changes[slot] - self._given_back.get(slot, 0.0))

    def with_calls(self, slot: int) -> int | None:
        kept = self.kept(slot)
        if kept is None:
            return None
        turns = self._turns(slot)
        return kept + round(sum(tally.total_inside(slot, turns) for tally in self._levels))

    def peak(self, slot: int) -> int | None:
        return max((tally.peaks[slot] for tally in self._tallies), default=None)

    def is_estimate(self, slot: int) -> bool:
        turns = self._turns(slot)
        return any(tally.total(slot, turns)[1] for tally in self._levels) or bool(
            turns and not all(tally.has_seen(slot) for tally in self._levels)
        )


def rows_of(ledger: Ledger, watched: Watched, has_device: bool) -> tuple[LineRow, ...]:
    """One for each statement, in the order of the source."""
    host = _Side(ledger, watched, (one for one in ledger.tallies if one.name != "device"))
    device = _Side(
        ledger, watched, (one for one in ledger.tallies if has_device and one.name == "device")
    )
    return tuple(
        LineRow(
            line=line,
            source=_source(watched, slot),
            calls=ledger.counts[slot],
            kept_bytes=host.kept(slot),
            with_calls_bytes=host.with_calls(slot),
            peak_bytes=host.peak(slot),
            given_back_bytes=host.given_back(slot),
            device_kept_bytes=device.kept(slot),
            device_peak_bytes=device.peak(slot),
            is_estimate=host.is_estimate(slot) or device.is_estimate(slot),
        )
        for slot, line in sorted(watched.line_of.items(), key=lambda pair: pair[1])
        if ledger.counts[slot] or line > watched.code.co_firstlineno
    )


def _source(watched: Watched, slot: int) -> str:
    """The statement on one line, with its indentation."""
    first = watched.line_of[slot]
    last = watched.end_of[slot]
    file = watched.code.co_filename
    rest = (linecache.getline(file, line).strip() for line in range(first + 1, last + 1))
    return " ".join((linecache.getline(file, first).rstrip(), *rest))
