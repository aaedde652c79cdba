"""Things that grow, as one look sees them: containers, graphs, and what was born and lives on.

Finding them is cheap and happens while the window is still open, so that the lines that made their
newest items can be asked for; weighing them and searching for their holders comes after.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import reduce
from types import MappingProxyType
from typing import Any, NamedTuple

from leakscope.model import NO_BLOCKS, Blocks, SiteTally
from leakscope.observe import foreign
from leakscope.observe.anatomy import is_kind
from leakscope.observe.autograd import (
    NODE_BYTES,
    TENSOR_BYTES,
    is_tensor_type,
    reachable_nodes,
    storage_of,
    walk,
    without_torch_functions,
)
from leakscope.observe.containers import Grower
from leakscope.observe.cycles import is_in_cycle
from leakscope.observe.devices import NOTHING_GIVEN, Given, device_of
from leakscope.observe.gradient_cycles import find_gradient_cycles
from leakscope.observe.graphs import GrowingGraph
from leakscope.observe.populations import Population
from leakscope.observe.sites import sites_of, traced_among
from leakscope.observe.survivors import garbage_among, kinds_of, sample_of
from leakscope.observe.swelling import Swollen
from leakscope.observe.weigh import weigh

_ITEMS_WEIGHED = 6
_MORE_WEIGHED = 18
_HEAVIER = 1.03
"""Times as heavy, by more items: from here on what the ends of a sample lose shows. Two items of a
batch that share it lost a tenth of their weight where the sample of six began between them; at 1.3
a deque from which each step draws a quarter was GROWING in two runs of four."""
_GRAPH = "FuncGraph"
_ALIVE_OF_CLAIMED = 0.5
_MOST_VISITED, _GLANCED_AT = 4_000, 240
_WEIGHED_THOROUGHLY = 4
_NODES_WEIGHED = 1_500
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
    older: Sequence[Any] = ()
    """Some that came before those."""


class Weighed(NamedTuple):
    """A lead, with what one more item of it keeps alive."""

    lead: Lead
    each: float
    parts: dict[str, float]
    shared_bytes: float
    chain: tuple[tuple[str, str], ...]
    """From an item to its biggest part, in words."""
    on_device: Mapping[str, float] = MappingProxyType({})
    """Of `each`, what lies on devices."""
    opaque: Mapping[str, float] = MappingProxyType({})
    """What one item leads to that cannot be weighed: how many of each kind."""
    sites: tuple[SiteTally, ...] = ()
    """Lines that made what cannot be weighed, where they were noted."""
    item: str = ""
    """The item that leads to its biggest part, in words."""
    in_blocks: Blocks = NO_BLOCKS
    """Of `each`, what lies in Python's blocks."""

    @property
    def opaque_count(self) -> int:
        """How many items have come that bring things that cannot be weighed. Not how many of
        those: what lies inside of a graph leads to all graphs around it."""
        return self.lead.now - self.lead.before if self.opaque else 0

    @property
    def grown_bytes(self) -> float:
        return (self.lead.now - self.lead.before) * self.each

    @property
    def grown_blocks(self) -> Blocks:
        return self.in_blocks.times(self.lead.now - self.lead.before)


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
                older=grower.before_newest(len(items), _MORE_WEIGHED),
            )
        )
    return leads


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
    """Of classes that no other lead is of: garbage in cycles becomes more, too."""
    told = {id(type(lead.it)) for lead in beside}
    return [
        Lead(
            kind="chain",
            it=one.sample[0],
            before=one.before,
            now=len(one.members),
            items=one.sample,
            keys=[],
            sites=sites_of(traced_among(one.members)),
            then=one.then,
            others=frozenset(map(id, one.members)) - frozenset(map(id, one.sample)),
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
    """How often the leads themselves refer to each object: that is not the program's doing."""
    ours: Counter[int] = Counter()
    for lead in leads:
        ours[id(lead.it)] += 1
        ours.update(map(id, lead.items))
        ours.update(map(id, lead.keys))
        ours.update(map(id, lead.older))
    return ours


def weigh_all(
    leads: list[Lead],
    ignored: Set[int],
    ours: Mapping[int, int],
    given: Given = NOTHING_GIVEN,
) -> list[Weighed]:
    """All leads, the heaviest first: at first glance, then the heaviest of them thoroughly.

    A thing costs 4 µs, and most of what grows in a process is small tables of its libraries."""
    glanced = [weighed(lead, ignored, ours, _GLANCED_AT, given) for lead in leads]
    glanced.sort(key=by_weight)
    thorough = [
        _weigh_thoroughly(one.lead, ignored, ours, given) for one in glanced[:_WEIGHED_THOROUGHLY]
    ]
    return sorted(thorough + glanced[_WEIGHED_THOROUGHLY:], key=by_weight)


def believe_opaque(weighed: list[Weighed], more_graphs: int) -> list[Weighed]:
    """The same, the heaviest first, without traced graphs where too few more of them are alive: a
    table inside a graph that is in use lies where a dead one's was, and seems to have grown."""
    return sorted((_without_dead(one, more_graphs) for one in weighed), key=by_weight)


def _without_dead(one: Weighed, more_graphs: int) -> Weighed:
    claimed = (one.lead.now - one.lead.before) * one.opaque.get(_GRAPH, 0.0)
    if more_graphs >= _ALIVE_OF_CLAIMED * claimed:
        return one
    others = {name: count for name, count in one.opaque.items() if name != _GRAPH}
    return one._replace(opaque=others, sites=one.sites if others else ())


def _weigh_thoroughly(
    lead: Lead, ignored: Set[int], ours: Mapping[int, int], given: Given
) -> Weighed:
    """By the newest items; or by more of them, where each then weighs more. What the
    step that is under way uses too is not counted, and may be what all of the newest keep; and of
    items that keep something together (three callbacks of one dataset), few are a part of it.

    Then by what the others add to the newest: what is lost at either end of a sample is lost at
    the ends of both, and falls out."""
    newest = weighed(lead, ignored, ours, _MOST_VISITED, given)
    if not lead.older:
        return newest
    items = [*lead.items, *lead.older]
    more = weighed(lead._replace(items=items), ignored, ours, _MOST_VISITED, given)
    if more.each <= _HEAVIER * newest.each:
        return newest
    added = len(items) * more.each - len(lead.items) * newest.each
    return _scaled(more._replace(lead=lead), added / len(lead.older) / more.each)


def _scaled(one: Weighed, factor: float) -> Weighed:
    return one._replace(
        each=factor * one.each,
        parts={part: factor * size for part, size in one.parts.items()},
        on_device={device: factor * size for device, size in one.on_device.items()},
        in_blocks=one.in_blocks.times(factor),
    )


def by_weight(one: Weighed) -> tuple[float, float]:
    """What comes with things that cannot be weighed is first: they are the heaviest there are."""
    return -one.opaque_count, -one.grown_bytes


def weighed(
    lead: Lead,
    ignored: Set[int],
    ours: Mapping[int, int],
    most_visited: int = _MOST_VISITED,
    given: Given = NOTHING_GIVEN,
) -> Weighed:
    """What one more keeps alive. `ignored` are the things that grow: an item that leads back to
    its own container (a frame's `self`, a parent pointer) does not keep all the others alive."""
    if lead.kind == "array":
        device = device_of(lead.it) if is_tensor_type(type(lead.it)) else None
        return Weighed(lead, 1.0, {"arrays": 1.0}, 0.0, (), {device: 1.0} if device else {})
    if lead.kind == "graph":
        return _weigh_graph(lead)
    ignored = ignored | lead.others
    weight = weigh(lead.items, most_objects=most_visited, ignore=ignored, ours=ours, given=given)
    each, parts, shared = weight.exclusive_bytes, dict(weight.parts), weight.shared_bytes
    chain, in_blocks = weight.longest, weight.in_blocks
    if lead.keys:
        of_keys = weigh(lead.keys, most_objects=most_visited, ignore=ignored, ours=ours)
        if of_keys.exclusive_bytes > each:
            chain = (("key", type(lead.keys[0]).__name__), *of_keys.longest)
        each += of_keys.exclusive_bytes
        shared += of_keys.shared_bytes
        in_blocks = in_blocks.plus(of_keys.in_blocks)
        for part, size in of_keys.parts.items():
            parts[part] = parts.get(part, 0.0) + size
    parts["python"] = parts.get("python", 0.0) + lead.slot_bytes
    each += lead.slot_bytes
    unseen = (weight.opaque, weight.sites)
    return Weighed(
        lead, each, parts, shared, chain, weight.on_device, *unseen, weight.item, in_blocks
    )


def sum_of_blocks(weighed: Iterable[Weighed]) -> Blocks:
    return reduce(Blocks.plus, (one.grown_blocks for one in weighed), NO_BLOCKS)


def _weigh_graph(lead: Lead) -> Weighed:
    """Per node, with what it has saved; of a large graph, by its youngest part.

    Who else holds the nodes does not matter: the loss of the last step does, for a while."""
    with without_torch_functions():
        graph = walk([lead.it.grad_fn], most_nodes=_NODES_WEIGHED)
        leaves = {found[0] for leaf in graph.leaves if (found := storage_of(leaf)) is not None}
    # `0.9 * shadow` has saved the number as a tensor: 8 bytes, and what any tensor is beside them.
    saved = sum(size + TENSOR_BYTES for key, size in graph.saved.items() if key not in leaves)
    nodes = max(graph.nodes, 1)
    parts = {"nodes": float(NODE_BYTES), "saved": saved / nodes}
    first = graph.first
    chain = ((".grad_fn", first.node), (f"saved {first.name}", "Tensor")) if first else ()
    on_device: dict[str, float] = {}
    for key, device in graph.devices.items():
        if key not in leaves:
            on_device[device] = on_device.get(device, 0.0) + graph.saved[key] / nodes
    return Weighed(lead, sum(parts.values()), parts, 0.0, chain, on_device)


def take_kin(first: Weighed, others: list[Weighed]) -> list[Weighed]:
    """Other growing containers that lie in the same container as this one: the lists of a dict of
    lists are one holder. Takes them out of `others`."""
    if not any(other.lead.kind == "container" for other in others):
        return []
    ours = {id(others), *(id(other.lead) for other in others), id(first.lead)}
    siblings: set[int] = set()
    for parent in gc.get_referrers(first.lead.it):
        if is_kind(parent, list, dict) and id(parent) not in ours:
            siblings.update(map(id, gc.get_referents(parent)))
    kin = [one for one in others if one.lead.kind == "container" and id(one.lead.it) in siblings]
    others[:] = [one for one in others if not any(one is other for other in kin)]
    return kin
