"""One path from a root to each object: the shortest of the stage that names it best."""

from __future__ import annotations

from dataclasses import dataclass

from leakscope.heap.arrays import Indices, Numbers
from leakscope.heap.ranks import GRAPH_OF_ITEM, IMPORTED, OURS, STRONG, WEAK, rank_edges
from leakscope.heap.reach import Reach
from leakscope.heap.roots import Root, Stage, find_roots
from leakscope.heap.snapshot import HeapSnapshot
from leakscope.heap.unreached import find_unreached


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """All that was reached, in the order of finding it: a *position* is a place in that order."""

    nodes: Indices
    parents: Indices
    """Position of the one that leads to it; -1 for a root."""
    edges: Numbers
    """The edge it was found by; of a root, its index in `roots`."""
    roots: list[Root]
    batches: list[tuple[int, int]]
    """Ranges of positions whose parents are all before the range; what lies between two of them
    is short, or a chain."""
    our_bytes: int
    """What leakscope's own objects take, which have no path."""

    def __len__(self) -> int:
        return len(self.nodes)


def find_paths(snapshot: HeapSnapshot) -> Paths:
    """Search from all roots, stage by stage; then along poorer names for what was not reached; then
    from what native code holds, and through what waits for the collector."""
    roots = find_roots(snapshot)
    ranks = rank_edges(snapshot, roots)
    reach = Reach(snapshot.starts, snapshot.targets, ranks)
    known: list[Root] = []
    for stage in roots.stages:
        _search(reach, known, stage, STRONG)
    for rank in (GRAPH_OF_ITEM, IMPORTED, WEAK):
        reach.follow_again(rank)
    of_program = reach.count
    _search(reach, [], roots.ours, OURS)
    reach.follow_again(OURS)  # what leakscope has put into tables of others
    ours = reach.nodes[of_program : reach.count].copy()
    _forget(reach, of_program)
    for stage in find_unreached(snapshot, reach.is_reached):
        _search(reach, known, stage, OURS)
    end = reach.count
    return Paths(
        nodes=reach.nodes[:end].copy(),
        parents=reach.parents[:end].copy(),
        edges=reach.edges[:end].copy(),
        roots=known,
        batches=reach.wide_levels,
        our_bytes=int(snapshot.bytes[ours].sum()),
    )


def _search(reach: Reach, known: list[Root], stage: Stage, rank: int) -> None:
    begin = reach.count
    reach.begin(stage.nodes, stage.which + len(known))
    known.extend(stage.roots)
    reach.follow(begin, rank)


def _forget(reach: Reach, count: int) -> None:
    """Take what came after a position out of the order; it stays reached."""
    reach.count = count
    reach.wide_levels = [level for level in reach.wide_levels if level[1] <= count]
