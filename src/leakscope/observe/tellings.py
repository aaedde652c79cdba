"""From a lead that was weighed to the record of it: its path, in words, and its history."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from leakscope.model import Holding, Link, Moment
from leakscope.observe import foreign
from leakscope.observe.anatomy import describe
from leakscope.observe.cycles import links_of_cycle
from leakscope.observe.gradient_cycles import links_of_gradient_cycle
from leakscope.observe.holders import find_path
from leakscope.observe.leads import GRADIENT_CYCLE, VAGUE, Lead, contains
from leakscope.observe.origins import places
from leakscope.observe.registries import registry_path
from leakscope.observe.weighing import Weighed, sum_of_blocks

_NOBODYS = ("garbage", "native")
_CALLABLES = ("partial", "function", "method")
_OF_STEPS = 0.9
"""One of many steps may be without. A choice; seen on one program, and its repaired one."""
_CONTAINERS = ("list", "dict", "set", "deque", "OrderedDict", "defaultdict")
_ATTRIBUTES = "__dict__"
_ITEMS = {"graph": "graph node", "array": "byte"}

Key = tuple[str, ...]


class Telling:
    """The holdings of one look, those of one description together, with what earlier looks saw."""

    def __init__(self) -> None:
        self._families: dict[Key, Holding] = {}
        self._history: dict[Key, dict[int, int]] = {}

    def begin(self) -> None:
        self._families = {}

    def add(self, holding: Holding) -> None:
        key = tuple(f"{link.kind} {link.scope} {link.name}" for link in holding.path)
        known = self._families.get(key)
        self._families[key] = holding if known is None else _together(known, holding)

    def has_told(self, path: tuple[Link, ...]) -> bool:
        """Is something on this path told already as what grows?"""
        names = {(link.scope, link.name) for link in path if link.name}
        told = (holding.path[holding.grows_at] for holding in self._families.values())
        return any((link.scope, link.name) in names for link in told if link.name)

    def has_cycle(self) -> bool:
        return any(holding.kind == "cycle" for holding in self._families.values())

    def done(self) -> list[Holding]:
        return [self._with_history(key, holding) for key, holding in self._families.items()]

    def _with_history(self, key: Key, holding: Holding) -> Holding:
        """Survivors are counted anew each time, and have no history."""
        if holding.kind in VAGUE:
            return holding
        history = self._history.setdefault(key, {})
        for step, count in holding.counts:
            history.setdefault(step, count)
        return replace(holding, counts=tuple(sorted(history.items())))


def path_to(lead: Lead, own: set[int], deadline_ns: int) -> tuple[Link, ...]:
    if lead.kind == "cycle":
        return links_of_cycle(lead.it)
    if lead.kind == GRADIENT_CYCLE:
        return links_of_gradient_cycle(lead.it)
    if lead.kind == "container" and (links := registry_path(lead.it)):
        return links
    paths = []
    wanted = _to_search(lead)
    own = own | {id(wanted)}
    for one in wanted:
        path = find_path(one, is_ours=lambda other: id(other) in own, deadline_ns=deadline_ns)
        paths.append(path.links)
        if lead.kind != "chain" or _is_piled_up(path.links):
            return path.links or _not_found(lead)
    return paths[0] or _not_found(lead)


def _to_search(lead: Lead) -> list[Any]:
    """Of what lives on, a few: one may be in use by the step that is under way."""
    if lead.kind != "chain":
        return [lead.it]
    if lead.entry is not None:
        return [lead.entry]
    return [lead.it, lead.items[len(lead.items) // 2], lead.items[-1]][: len(lead.items)]


def _is_piled_up(path: tuple[Link, ...]) -> bool:
    return any(link.kind == "item" for link in path) and is_held(path)


def _not_found(lead: Lead) -> tuple[Link, ...]:
    return (Link("held by something that was not found", describe(lead.it)),)


def is_held(path: tuple[Link, ...]) -> bool:
    """By somebody in Python."""
    return path[0].kind not in _NOBODYS


def take_innermost(
    weighed: list[Weighed], own: set[int], deadline_ns: int
) -> tuple[Weighed, tuple[Link, ...]]:
    """Of the graphs, the smallest that somebody holds: the state that is carried on lies at the
    bottom of the loss's graph, and what nobody holds lies within another. Takes it out, and those
    that contain it or that nobody holds."""
    graphs = sorted((one for one in weighed if one.lead.kind == "graph"), key=_size)
    own = own | {id(graphs)}
    path: tuple[Link, ...] = ()
    for one in graphs:
        weighed[:] = [other for other in weighed if other is not one]
        path = path_to(one.lead, own, deadline_ns)
        if is_held(path):
            weighed[:] = [
                other
                for other in weighed
                if other.lead.kind != "graph" or not contains(other.lead, one.lead)
            ]
            return one, path
    return graphs[-1], path


def _size(graph: Weighed) -> int:
    return graph.lead.now


def can_pile_up(lead: Lead, path: tuple[Link, ...]) -> bool:
    """A variable holds one thing at a time: what hangs on it directly is in use, not piled up. And
    a container that nobody holds has just been dropped, or has taken a dead one's address."""
    if foreign.is_present() and any(_is_of_a_graph(link) for link in path[:-1]):
        return False  # a table inside a traced graph: it is as long as the graph
    if lead.kind == "chain" and path[0].kind == "native":
        return _is_registered(lead, path)
    if lead.kind == "chain":
        return len(path) > 1 and is_held(path)
    if lead.kind == "container" and path[-1].name == _ATTRIBUTES and lead.then == lead.now:
        return False  # of an object that was made since the first look: it got them all at once
    return lead.kind != "container" or path[0].kind != "garbage"


def _is_registered(lead: Lead, path: tuple[Link, ...]) -> bool:
    """What only native code refers to may be on its way (a gradient, a batch that is handed on). A
    callable that came with each step is not: somebody registered it (`atexit`, a C library)."""
    is_callable = len(path) == 1 and path[0].type in _CALLABLES
    return is_callable and lead.now - lead.before >= _OF_STEPS * lead.steps > 1


def _is_of_a_graph(link: Link) -> bool:
    return link.type.endswith("FuncGraph") or link.type in ("Operation", "SymbolicTensor")


def tell(
    family: list[Weighed],
    path: tuple[Link, ...],
    looks: tuple[int, int, int],
    process: str,
    at: Moment,
) -> Holding:
    """One record for a lead and its kin; `looks` are the steps of the last look, of the opening of
    the window, and of this look."""
    first = family[0]
    lead = first.lead
    item = _ITEMS.get(lead.kind) or first.item
    item = item or (describe(lead.items[0]) if lead.items else "item")
    tail = [Link("[x]", item, "item")] if lead.kind == "container" else []
    tail += [Link(via, what, "payload") for via, what in first.chain]
    before = sum(one.lead.before for one in family)
    now = sum(one.lead.now for one in family)
    since, opened, step = looks
    counts = [(step - lead.steps if lead.steps else since, before), (step, now)]
    if all(one.lead.then is not None for one in family):
        counts.insert(1, (opened, sum(one.lead.then or 0 for one in family)))
    more = max(now - before, 1)
    in_blocks = sum_of_blocks(family).times(1 / more)
    return Holding(
        at=at,
        process=process,
        kind=lead.kind,
        path=(*path, *tail),
        grows_at=_grows_at(lead, path),
        item=item,
        counts=tuple(counts),
        bytes_each=sum(one.grown_bytes for one in family) / more,
        shared_bytes=first.shared_bytes,
        parts=first.parts,
        blocks_each=in_blocks.number,
        in_blocks=in_blocks.bytes,
        on_device=_on_device(family, now - before),
        holders=len(family),
        bound=lead.bound,
        sites=first.sites or places.sites_of(path[-1].name) or lead.sites,
        opaque=dict(first.opaque),
    )


def _on_device(family: list[Weighed], grown: int) -> dict[str, float]:
    """What one more takes on each device; of several things, on average."""
    total: dict[str, float] = {}
    for one in family:
        for device, size in one.on_device.items():
            more = (one.lead.now - one.lead.before) * size
            total[device] = total.get(device, 0.0) + more
    return {device: size / max(grown, 1) for device, size in total.items()}


def _grows_at(lead: Lead, path: tuple[Link, ...]) -> int:
    """The end of the path; of what lives on without a container that was seen to grow, the
    container nearest to the root that it is an item of, or else the first name."""
    if lead.kind != "chain":
        return len(path) - 1
    for place, link in enumerate(path[1:], start=1):
        if link.kind == "item" and path[place - 1].type in _CONTAINERS:
            return place - 1
    return min(1, len(path) - 1)


def _together(one: Holding, other: Holding) -> Holding:
    """Two things of one description: the same attribute of several modules, say."""
    more_counts = dict(other.counts)
    counts = tuple(
        (step, count + more_counts[step]) for step, count in one.counts if step in more_counts
    )
    grown, more = (_grown(holding) for holding in (one, other))
    total = grown * one.bytes_each + more * other.bytes_each
    return replace(
        one,
        counts=counts,
        bytes_each=total / max(grown + more, 1),
        blocks_each=(grown * one.blocks_each + more * other.blocks_each) / max(grown + more, 1),
        in_blocks=(grown * one.in_blocks + more * other.in_blocks) / max(grown + more, 1),
        on_device={
            device: (
                grown * one.on_device.get(device, 0.0) + more * other.on_device.get(device, 0.0)
            )
            / max(grown + more, 1)
            for device in {**one.on_device, **other.on_device}
        },
        holders=one.holders + other.holders,
        sites=one.sites or other.sites,
    )


def _grown(holding: Holding) -> int:
    return holding.counts[-1][1] - holding.counts[0][1]
