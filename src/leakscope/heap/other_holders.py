"""Who else holds the items of something that grows: emptying one holder alone frees nothing."""

from __future__ import annotations

from collections import Counter

import numpy as np

from leakscope.heap.growing import Growing
from leakscope.heap.links import links_of
from leakscope.heap.merge import path_of
from leakscope.heap.snapshot import HeapSnapshot
from leakscope.model import Link
from leakscope.record.snapshot_file import EdgeRole

_MOST = 5


def other_holders(snapshot: HeapSnapshot, growing: Growing) -> list[tuple[Link, ...]]:
    """Paths of other groups that refer to at least half of the items asked for. `snapshot` is the
    last one."""
    groups, members = growing.groups, growing.groups.members
    nodes = [node for node in snapshot.find(list(growing.addresses)) if node >= 0]
    is_item = np.zeros(snapshot.count, np.bool_)
    is_item[nodes] = True
    of_node = np.full(snapshot.count, -1, np.int32)
    of_node[members.nodes] = members.groups
    edges = np.flatnonzero(is_item[snapshot.targets])
    sources = np.searchsorted(snapshot.starts, edges, side="right") - 1
    held: Counter[int] = Counter()
    pairs = {
        (int(group), int(target))
        for group, target, role in zip(
            of_node[sources], snapshot.targets[edges], snapshot.roles()[edges], strict=True
        )
        if group > 0 and role != EdgeRole.TYPE
    }
    held.update(group for group, _ in pairs)
    mine = set(growing.path)
    found = []
    for group, count in held.most_common():
        path = path_of(groups.parents, group)
        # What the items refer to may refer back to them.
        is_inside = growing.path[growing.item] in path
        if 2 * count >= len(nodes) and group not in mine and not is_inside:
            found.append(links_of(groups, path))
    return found[:_MOST]
