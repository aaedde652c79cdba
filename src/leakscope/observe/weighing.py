"""What grows, weighed: what one more item of a lead keeps alive, and which leads keep it together.

Weighing comes after finding (observe/leads.py), when the window is closed, and before the search
for holders, which is dearer still.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import reduce
from statistics import fmean
from types import MappingProxyType
from typing import Any, NamedTuple

from leakscope.model import NO_BLOCKS, Blocks, SiteTally
from leakscope.observe.anatomy import is_kind
from leakscope.observe.autograd import (
    NODE_BYTES,
    is_tensor_type,
    storage_of,
    walk,
    without_torch_functions,
)
from leakscope.observe.devices import NOTHING_GIVEN, Given, device_of
from leakscope.observe.leads import Lead
from leakscope.observe.tensor_bytes import TENSOR_BYTES
from leakscope.observe.weigh import weigh

_MORE_WEIGHED = 18
_HEAVIER = 1.03
"""Times as heavy, by more items: from here on what the ends of a sample lose shows. Two items of a
batch that share it lost a tenth of their weight where the sample of six began between them; at 1.3
a deque from which each step draws a quarter was GROWING in two runs of four."""
_MUCH_HEAVIER = 2.0
_MOST_TOGETHER = 32
"""Tables that have the same things, of which each alone seems to keep nothing: the hooks of three
layers, all of one recorder. Choices."""
_GRAPH = "FuncGraph"
_ALIVE_OF_CLAIMED = 0.5
_MOST_VISITED, _GLANCED_AT = 4_000, 240
_WEIGHED_THOROUGHLY = 4
_NODES_WEIGHED = 1_500


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
    group: int = 0
    """Those of one number keep it together; 0: it keeps it alone."""

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
    return _weigh_with(lead.older[:_MORE_WEIGHED], newest, ignored, ours, given)


def weigh_more(
    weighed: list[Weighed], ignored: Set[int], ours: Mapping[int, int], given: Given
) -> list[Weighed]:
    """The same, the heaviest first, by as many items as there are, where these share more than each
    of them has alone: it may be their neighbours with whom they share it."""
    again = [one for one in weighed if one.shared_bytes > one.each and one.lead.older]
    again = again[:_WEIGHED_THOROUGHLY]
    others = [one for one in weighed if not any(one is other for other in again)]
    again = [_weigh_with(one.lead.older, one, ignored, ours, given) for one in again]
    together = _weigh_together(again + others, ignored, ours, given)
    return sorted(together, key=by_weight)


def _weigh_together(
    weighed_alone: list[Weighed], ignored: Set[int], ours: Mapping[int, int], given: Given
) -> list[Weighed]:
    """The same; tables that have grown by as many things of one type are weighed as one, and each
    has its part of it where that is much more than they have alone."""
    groups: dict[tuple[int, int], list[Weighed]] = {}
    for one in weighed_alone:
        lead = one.lead
        if lead.kind == "container" and lead.items and one.shared_bytes > one.each:
            key = (id(type(lead.items[0])), lead.now - lead.before)
            groups.setdefault(key, []).append(one)
    result = {id(one): one for one in weighed_alone}
    several = [group for group in groups.values() if 1 < len(group) <= _MOST_TOGETHER]
    several.sort(key=lambda group: -max(one.shared_bytes for one in group))
    for number, group in enumerate(several[:_WEIGHED_THOROUGHLY], start=1):
        items = [item for one in group for item in one.lead.items]
        whole = weighed(group[0].lead._replace(items=items), ignored, ours, _MOST_VISITED, given)
        if whole.each > _MUCH_HEAVIER * fmean(one.each for one in group):
            result |= {id(one): whole._replace(lead=one.lead, group=number) for one in group}
    return list(result.values())


def _weigh_with(
    older: Sequence[Any],
    newest: Weighed,
    ignored: Set[int],
    ours: Mapping[int, int],
    given: Given,
) -> Weighed:
    """By what these add to the newest items, if each weighs more with them."""
    lead = newest.lead
    items = [*lead.items, *older]
    more = weighed(lead._replace(items=items), ignored, ours, _MOST_VISITED, given)
    if more.each <= _HEAVIER * newest.each:
        return newest
    added = len(items) * more.each - len(lead.items) * newest.each
    return _scaled(more._replace(lead=lead), added / len(older) / more.each)


def _scaled(one: Weighed, factor: float) -> Weighed:
    return one._replace(
        each=factor * one.each,
        parts={part: factor * size for part, size in one.parts.items()},
        on_device={device: factor * size for device, size in one.on_device.items()},
        in_blocks=one.in_blocks.times(factor),
    )


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
    weight = weigh(
        lead.items,
        most_objects=most_visited,
        ignore=ignored,
        ours=ours,
        given=given,
        alike=lead.their_references,
    )
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


def grown_in_all(weighed: list[Weighed]) -> float:
    """Bytes; of several growing graphs the largest alone, for they are mostly one."""
    graphs = [one.grown_bytes for one in weighed if one.lead.kind == "graph"]
    others = sum(one.grown_bytes for one in weighed if one.lead.kind != "graph")
    return others + max(graphs, default=0.0)


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


def take_kin(first: Weighed, others: list[Weighed], *, is_item: bool) -> list[Weighed]:
    """Other growing containers that keep it together with this one; or that lie in the same
    container, if it is an item of one: the lists of a dict of lists are one holder. Takes them out
    of `others`."""
    if first.group:
        kin = [one for one in others if one.group == first.group]
    elif is_item and any(other.lead.kind == "container" for other in others):
        siblings = _siblings_of(first, others)
        kin = [o for o in others if o.lead.kind == "container" and id(o.lead.it) in siblings]
    else:
        return []
    others[:] = [one for one in others if not any(one is other for other in kin)]
    return kin


def _siblings_of(first: Weighed, others: list[Weighed]) -> set[int]:
    ours = {id(others), *(id(other.lead) for other in others), id(first.lead)}
    siblings: set[int] = set()
    for parent in gc.get_referrers(first.lead.it):
        if is_kind(parent, list, dict) and id(parent) not in ours:
            siblings.update(map(id, gc.get_referents(parent)))
    return siblings
