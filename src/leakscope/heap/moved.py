"""Follow objects from snapshot to snapshot where the way to them differs.

Where a snapshot falls decides what runs at that moment. A coroutine's variable is a local variable
while the coroutine runs, and part of a task that waits the next time; what a context variable leads
to is held by a local token now and then. The objects stay where they are: a group whose path the
last snapshot does not have is the group that most of its members are in by then.
"""

from __future__ import annotations

import numpy as np

from leakscope.heap.arrays import Booleans, Indices, Numbers, Words
from leakscope.heap.groups import Groups, levels_of, mix

_NOWHERE = -1


def follow_members(groups: Groups, identities: Words, last: Groups, last_ids: Words) -> Words:
    """The identities of an earlier snapshot's groups, with those of the last one where its members
    are in another place by then."""
    found = identities.copy()
    goals = _goals(groups, ~np.isin(identities, last_ids), last)
    # What has its own place in the last snapshot already is joined by nobody.
    is_free = ~np.isin(last_ids, identities)
    is_moved = np.zeros(len(groups), np.bool_)
    for level in levels_of(groups.parents):
        below = level[is_moved[groups.parents[level]]]
        found[below] = mix(found[groups.parents[below]], groups.steps[below])
        is_moved[below] = True
        lost = level[(goals[level] != _NOWHERE) & ~np.isin(found[level], last_ids)]
        lost = lost[is_free[goals[lost]]]
        found[lost] = last_ids[goals[lost]]
        is_moved[lost] = True
    return found


def _goals(groups: Groups, is_asked: Booleans, last: Groups) -> Indices:
    """For each group that is asked for: the group of the last snapshot that most of its members
    are in, of the same type; or nowhere."""
    goals: Indices = np.full(len(groups), _NOWHERE, np.int32)
    members, later = groups.members, last.members
    asked = np.flatnonzero(is_asked[members.groups])
    order = np.argsort(later.addresses)
    places = np.searchsorted(later.addresses, members.addresses[asked], sorter=order)
    places = order[np.minimum(places, len(order) - 1)]
    is_there = later.addresses[places] == members.addresses[asked]
    own, others = members.groups[asked[is_there]], later.groups[places[is_there]]
    is_same = _types(groups)[own] == _types(last)[others]
    pairs, votes = np.unique(
        own[is_same].astype(np.int64) * len(last) + others[is_same], return_counts=True
    )
    voters = pairs // len(last)
    is_most = 2 * votes > np.bincount(members.groups, minlength=len(groups))[voters]
    goals[voters[is_most]] = (pairs % len(last))[is_most]
    return goals


def _types(groups: Groups) -> Numbers:
    """A number for the type of each group, the same in all snapshots of a process."""
    names = [hash(kind.qualified_name) for kind in groups.kind_table]
    found: Numbers = np.array(names, np.int64)[groups.kinds]
    return found
