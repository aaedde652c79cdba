"""Members of a group that an earlier snapshot does not have, and what they keep."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from leakscope.heap.aligned import Aligned
from leakscope.heap.arrays import Booleans, Numbers, Words

_MOST_ADDRESSES = 100
"""Enough to ask where such items are made."""


def bytes_of_new_members(aligned: Aligned, row: int) -> int:
    """What the members that came after the first snapshot keep: their own bytes and those of all
    that is below them, up to the next member."""
    last = aligned.snapshots[-1].members
    rows = aligned.rows[-1]
    positions = np.flatnonzero(aligned.is_below(rows, row)[last.groups])
    places = np.zeros(len(last.groups), np.int32)
    places[positions] = np.arange(len(positions), dtype=np.int32)
    is_member = (rows[last.groups[positions]] == row) & ~last.is_part[positions]
    owners = np.where(is_member, np.arange(len(positions)), places[last.steps[positions]])
    while True:  # each round doubles how far up it looks
        above = owners[owners]
        if (above == owners).all():
            break
        owners = above
    is_new = np.zeros(len(positions), np.bool_)
    members = np.flatnonzero(is_member)
    is_new[members] = ~np.isin(last.addresses[positions[members]], _addresses(aligned, 0, row))
    return int(last.bytes[positions][is_new[owners]].sum())


def new_addresses(aligned: Aligned, rows: Iterable[int]) -> tuple[int, ...]:
    """Members of the last snapshot, those that the one before does not have first."""
    rows = list(rows)
    now = np.concatenate([_addresses(aligned, -1, row) for row in rows])
    before = np.concatenate([_addresses(aligned, -2, row) for row in rows])
    is_old: Booleans = np.isin(now, before)
    order: Numbers = np.argsort(is_old, kind="stable")
    return tuple(now[order][:_MOST_ADDRESSES].tolist())


def _addresses(aligned: Aligned, at: int, row: int) -> Words:
    group = aligned.group_of(at, row)
    members = aligned.snapshots[at].members
    found: Words = members.addresses[(members.groups == group) & ~members.is_part]
    return found
