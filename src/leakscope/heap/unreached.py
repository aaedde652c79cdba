"""Objects that no root leads to: held by native code, or garbage that waits for the collector.

Told apart exactly, without running the collector, by the sum that the collector itself does: an
object with more references than the tracked objects among them explain is held from outside, and
so is everything that it leads to. The rest would be freed by a collection.

References that the collector does not see (of an array of objects, of an autograd node) keep
things alive for ever if they close a cycle: nobody holds those, and no collection frees them.
"""

from __future__ import annotations

import numpy as np

from leakscope.heap.arrays import Booleans, Indices, Numbers, edges_of
from leakscope.heap.reach import Reach
from leakscope.heap.roots import Owners, Root, Stage, is_ours
from leakscope.heap.snapshot import IS_CLASS, IS_TRACKED, NO_REFCOUNT, HeapSnapshot, is_shortcut
from leakscope.heap.type_table import HeapType
from leakscope.model import LinkKind
from leakscope.record.snapshot_file import ROLE_SHIFT, EdgeRole

NATIVE = "(held by native code)"
LOOP = "(held by a running loop or native code)"
GARBAGE = "(garbage in reference cycles)"
HIDDEN_CYCLE = "(reference cycle that the collector does not see)"

_UNSEEN_ROLES = (EdgeRole.BASE, EdgeRole.ELEMENT)
"""Real references that no `tp_traverse` visits. Keys that are strings are others: they are marked
as shortcuts, but no other object has that reference."""

_SUSPENDED = ("generator", "coroutine", "async_generator")
_ITERATORS = (*_SUSPENDED, "enumerate", "zip", "map", "filter", "reversed")
_NO_TYPE = HeapType(0, "?", "")


class Unreached:
    """The part of a snapshot that no root leads to."""

    def __init__(self, snapshot: HeapSnapshot, is_reached: Booleans) -> None:
        self._snapshot = snapshot
        self.nodes: Numbers = np.flatnonzero(~is_reached)
        edges, ends = edges_of(snapshot.starts, self.nodes)
        sources = self.nodes[np.searchsorted(ends, np.arange(len(edges)), side="right")]
        targets = snapshot.targets[edges]
        labels = snapshot.labels[edges]
        roles = (labels >> np.uint64(ROLE_SHIFT)).astype(np.uint8)
        is_hidden = is_shortcut(labels)
        is_real = ~is_reached[targets] & (~is_hidden | (roles == EdgeRole.KEY))
        is_seen = is_real & ~is_hidden & ~snapshot.is_extra[edges]
        is_seen &= ~np.isin(roles, _UNSEEN_ROLES)
        is_seen &= (snapshot.flags[sources] & IS_TRACKED) != 0
        count = snapshot.count
        self._explained = np.bincount(targets[is_real], minlength=count)
        self._explained_to_collector = np.bincount(targets[is_seen], minlength=count)

    def held_from_outside(self) -> tuple[Numbers, Numbers]:
        """Nodes with references that nothing here explains: to the collector; and at all."""
        snapshot, nodes = self._snapshot, self.nodes
        refcounts = snapshot.refcounts[nodes]
        is_counted = refcounts != NO_REFCOUNT
        is_tracked = (snapshot.flags[nodes] & IS_TRACKED) != 0
        more = refcounts - self._explained[nodes]
        more_to_collector = refcounts - self._explained_to_collector[nodes]
        # What is not tracked goes with what refers to it, however many references are seen.
        is_alive = is_counted & np.where(is_tracked, more_to_collector > 0, more > 0)
        # A thing without a count is held by somebody if nothing here refers to it.
        is_lone = ~is_counted & (self._explained[nodes] == 0)
        return nodes[is_alive | is_lone], nodes[(is_counted & (more > 0)) | is_lone]


def find_unreached(snapshot: HeapSnapshot, is_reached: Booleans) -> list[Stage]:
    """Roots for what is not reached, stage by stage: together they lead to all of it."""
    if is_reached.all():
        return []
    alive, outside = Unreached(snapshot, is_reached).held_from_outside()
    stages = _native(snapshot, outside)
    is_left = ~is_reached
    is_left[_led_to(snapshot, outside, is_reached)] = False
    hidden = alive[is_left[alive]]
    stages.append(_one_root(_entries(snapshot, hidden, is_left), HIDDEN_CYCLE, LinkKind.NATIVE))
    is_left[_led_to(snapshot, hidden, ~is_left)] = False
    garbage = np.flatnonzero(is_left)
    stages.append(_one_root(_entries(snapshot, garbage, is_left), GARBAGE, LinkKind.GARBAGE))
    return stages


def _native(snapshot: HeapSnapshot, nodes: Numbers) -> list[Stage]:
    """Classes by name; iterators, which a running loop may hold; then everything else."""
    is_our_type = np.array([is_ours(kind.module) for kind in snapshot.type_table], np.bool_)
    nodes = nodes[~is_our_type[snapshot.types[nodes]]]
    is_class = (snapshot.flags[nodes] & IS_CLASS) != 0
    kinds = {kind.address: kind for kind in snapshot.type_table if kind.address}
    files = Owners(snapshot.meta).files
    classes = []
    for address in snapshot.addresses[nodes[is_class]].tolist():
        kind = kinds.get(address, _NO_TYPE)
        via, file = f"class {kind.qualified_name}", files.get(kind.module, "")
        text = f"class {kind.full_name}"
        classes.append(Root(via, LinkKind.CLASS, kind.name, file, kind.qualified_name, text=text))
    is_iterator = np.array([_is_iterator(kind) for kind in snapshot.type_table], np.bool_)
    is_loop = is_iterator[snapshot.types[nodes]] & ~is_class
    return [
        Stage(classes, nodes[is_class].astype(np.int32), np.arange(len(classes))),
        _one_root(nodes[is_loop], LOOP, LinkKind.NATIVE),
        _one_root(nodes[~is_loop & ~is_class], NATIVE, LinkKind.NATIVE),
    ]


def _is_iterator(kind: HeapType) -> bool:
    if kind.module == "itertools":
        return True
    is_built_in = kind.module in ("builtins", "_collections")
    return is_built_in and (kind.name.endswith("iterator") or kind.name in _ITERATORS)


def _one_root(nodes: Numbers, via: str, kind: str) -> Stage:
    return Stage([Root(via, kind)], nodes.astype(np.int32), np.zeros(len(nodes), np.int64))


def _led_to(snapshot: HeapSnapshot, nodes: Numbers, is_reached: Booleans) -> Indices:
    reach = Reach(snapshot.starts, snapshot.targets, np.zeros(len(snapshot.targets), np.uint8))
    reach.is_reached[:] = is_reached
    reach.begin(nodes.astype(np.int32), np.zeros(len(nodes), np.int64))
    reach.follow(0, 0)
    return reach.nodes[: reach.count]


def _entries(snapshot: HeapSnapshot, nodes: Numbers, is_left: Booleans) -> Numbers:
    """Of each strongly connected piece that nothing else leads to, the member that tells most."""
    if not len(nodes):
        return nodes
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    inside = np.flatnonzero(is_left)
    places = np.full(snapshot.count, -1, np.int32)
    places[inside] = np.arange(len(inside), dtype=np.int32)
    edges, ends = edges_of(snapshot.starts, inside)
    sources = np.searchsorted(ends, np.arange(len(edges)), side="right")
    targets = places[snapshot.targets[edges]]
    is_kept = targets >= 0
    sources, targets = sources[is_kept], targets[is_kept]
    size = len(inside)
    graph = csr_array((np.ones(len(targets), np.int8), (sources, targets)), shape=(size, size))
    count, pieces = connected_components(graph, directed=True, connection="strong")
    is_entered = np.zeros(count, np.bool_)
    is_entered[pieces[targets][pieces[sources] != pieces[targets]]] = True
    wanted = places[nodes]
    wanted = wanted[(wanted >= 0) & ~is_entered[pieces[wanted]]]
    telling = _telling(snapshot)[snapshot.types[inside[wanted]]]
    order = np.lexsort((wanted, telling, pieces[wanted]))
    _, first = np.unique(pieces[wanted][order], return_index=True)
    entries: Numbers = inside[wanted[order[first]]]
    return entries


def _telling(snapshot: HeapSnapshot) -> Indices:
    """How little each type tells a reader: instances of the program's classes come first, then of
    libraries', then Python's own parts."""
    owners = Owners(snapshot.meta)
    found = []
    for kind in snapshot.type_table:
        if kind.module == "__main__" or owners.is_of_the_program(owners.files.get(kind.module, "")):
            found.append(0)
        elif kind.module not in ("builtins", "types", "_collections", "collections"):
            found.append(1)
        elif kind.name in _SUSPENDED or kind.name in ("function", "method", "type"):
            found.append(2)
        else:
            found.append(3)
    return np.array(found, np.int32)
