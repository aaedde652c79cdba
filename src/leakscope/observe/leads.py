"""Things that grow, as one look sees them: containers, graphs, and what was born and lives on.

Finding them is cheap and happens while the window is still open, so that the lines that made their
newest items can be asked for; weighing them and searching for their holders comes after.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from leakscope.model import SiteTally
from leakscope.observe import foreign
from leakscope.observe.autograd import reachable_nodes
from leakscope.observe.containers import Grower
from leakscope.observe.cycles import is_in_cycle
from leakscope.observe.gradient_cycles import find_gradient_cycles
from leakscope.observe.graphs import GrowingGraph
from leakscope.observe.populations import Population
from leakscope.observe.sites import sites_of, traced_among
from leakscope.observe.survivors import garbage_among, kinds_of, sample_of
from leakscope.observe.swelling import Swollen

_ITEMS_WEIGHED = 6
_MOST_WEIGHED = 240
"""Where the growth is not explained: of 16 results that are views of one batch, 24 in a row have no
batch whole, and seem to keep nothing."""
_LARGEST_RING = 100_000
_NODES_SEARCHED = 60_000
_GROWERS = 40
_MOST_BORN = 60_000
_KINDS = 8
_FEWEST_BORN_A_STEP = 0.3
_FEWEST_GARBAGE_A_STEP = 1.0


GRADIENT_CYCLE = "gradient cycle"
VAGUE = ("cycle", "chain", GRADIENT_CYCLE)
"""Leads of what was born and lives: asked only when the others do not account for the growth."""


class Lead(NamedTuple):
    """A thing that grows. Holds objects of the program: lives within one look only."""

    kind: str
    it: Any
    before: int
    now: int
    items: list[Any]
    """Some of what it has gained, or of what has been born."""
    keys: list[Any]
    slot_bytes: float = 0.0
    bound: str = ""
    sites: tuple[SiteTally, ...] = ()
    steps: int = 0
    """Steps in which it has grown so; 0: since the last look."""
    then: int | None = None
    """How many there were when the window was opened, where that is known."""
    others: frozenset[int] = frozenset()
    """All of a population, by their ids: a node that leads to the one before it does not keep
    that one's bytes, too."""
    their_references: Mapping[int, int] = MappingProxyType({})
    """See `Population.references_of_others`."""
    older: Sequence[Any] = ()
    """Some that came before those."""
    entry: Any = None
    """See `Population`."""
    is_remade: bool = False
    """It is another object than before, and was known by what it looks like."""

    @property
    def is_doubtful(self) -> bool:
        """A container that was empty, and got all it has before the window was opened: a new one
        may have taken the address of another. But what is kept once an epoch looks the same."""
        is_suspect = not self.before and self.then == self.now
        return self.kind == "container" and (is_suspect or self.is_remade)


def leads_of_containers(growers: list[Grower]) -> list[Lead]:
    leads = []
    if foreign.is_present() and len(growers) > _GROWERS:
        # With every model many tables of Keras become longer, by more than a list of the models.
        known: dict[int, bool] = {}
        growers = sorted(growers, key=lambda one: foreign.distance_to_opaque(one.newest(1), known))
    for grower in growers[:_GROWERS]:
        items, keys = grower.newest(_ITEMS_WEIGHED), grower.newest_keys(_ITEMS_WEIGHED)
        leads.append(
            Lead(
                kind="container",
                it=grower.it,
                before=grower.before,
                now=grower.now,
                items=items,
                keys=keys,
                slot_bytes=grower.slot_bytes,
                bound=grower.bound,
                sites=sites_of(items),
                then=grower.then,
                older=grower.before_newest(len(items), _MOST_WEIGHED),
            )
        )
    return leads


def leads_of_remade(swollen: list[Swollen], beside: list[Lead]) -> list[Lead]:
    """Lists that are made anew, and longer. One that goes from one address to another and back has
    been found by its address."""
    found = {id(lead.it) for lead in beside}
    growers = [
        Grower(one.it, list, one.rows_before, one.rows_now, one.rows_now)
        for one in swollen
        if id(one.it) not in found
    ]
    return [lead._replace(then=None, is_remade=True) for lead in leads_of_containers(growers)]


def leads_of_graphs(graphs: list[GrowingGraph]) -> list[Lead]:
    return [
        Lead(
            kind="graph",
            it=one.tensor,
            before=one.before * one.alike,
            now=one.now * one.alike,
            items=[one.tensor],
            keys=[],
            sites=sites_of([one.tensor]),
        )
        for one in graphs
    ]


def contains(graph: Lead, other: Lead) -> bool:
    """Does the one tensor's graph lead to the other tensor's?"""
    nodes = reachable_nodes([graph.it.grad_fn], _NODES_SEARCHED)
    return other.it.grad_fn in nodes


def leads_of_arrays(swollen: list[Swollen]) -> list[Lead]:
    return [
        Lead("array", one.it, one.before, one.now, [one.it], [], sites=sites_of([one.it]))
        for one in swollen
    ]


def leads_of_populations(populations: list[Population], beside: list[Lead]) -> list[Lead]:
    """With the leads beside them, but one of each class: garbage in cycles becomes more, too. What
    has an entry is told as what it leads to, instead of what was born in the window."""
    entered = {id(type(one.entry)) for one in populations if one.entry is not None}
    beside = [one for one in beside if one.kind != "chain" or id(type(one.it)) not in entered]
    told = {id(type(lead.it)) for lead in beside}
    return beside + [
        Lead(
            kind="chain",
            it=one.sample[0],
            before=one.before,
            now=len(one.members),
            items=one.sample,
            keys=[],
            sites=sites_of(traced_among(one.members)),
            steps=one.steps,
            then=one.then,
            others=frozenset(map(id, one.members)) - frozenset(map(id, one.sample)),
            their_references=one.references_of_others(),
            entry=one.entry,
        )
        for one in populations
        if id(type(one.members[0])) not in told
    ]


def leads_among(born: list[Any], steps: int) -> list[Lead]:
    """What was born in so many steps and has outlived them: garbage in cycles, or kept."""
    if not born or len(born) > _MOST_BORN:
        return []
    tied = find_gradient_cycles(born)
    if len(tied) >= _FEWEST_GARBAGE_A_STEP * steps:
        items = tied[:_ITEMS_WEIGHED]
        return [
            Lead(
                GRADIENT_CYCLE, tied[0], 0, len(tied), items, [], sites=sites_of(items), steps=steps
            )
        ]
    garbage = garbage_among(born)
    cycles: list[Lead] = []
    if len(garbage) >= _FEWEST_GARBAGE_A_STEP * steps:
        cycles = _leads_of_kinds("cycle", garbage, steps)
    waste = set(map(id, garbage))
    return cycles + _leads_of_kinds("chain", [one for one in born if id(one) not in waste], steps)


def _leads_of_kinds(kind: str, objects: list[Any], steps: int) -> list[Lead]:
    leads = []
    for type_, count in kinds_of(objects)[:_KINDS]:
        if count >= steps * _FEWEST_BORN_A_STEP:
            items = sample_of(objects, type_, _ITEMS_WEIGHED)
            if kind == "cycle" and not is_in_cycle(items[0]):
                continue  # hangs on a cycle, and goes with it
            lead = Lead(kind, items[0], 0, count, items, [], sites=sites_of(items), steps=steps)
            leads.append(lead)
    return leads


def our_references(leads: list[Lead]) -> Counter[int]:
    """How often the leads themselves refer to each object: that is not the program's doing. Neither
    will it be that of a ring that is to be full soon: what a table without an end has of the same
    things is the table's."""
    ours: Counter[int] = Counter()
    for lead in leads:
        ours[id(lead.it)] += 1
        ours.update(map(id, lead.items))
        ours.update(map(id, lead.keys))
        ours.update(map(id, lead.older))
        if lead.bound and lead.now <= _LARGEST_RING:
            ours.update(map(id, gc.get_referents(lead.it)))
    return ours
