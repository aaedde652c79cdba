"""The looks themselves: what grows, who holds it, what one more of it weighs, where it was made.

Between looks only numbers and words are kept: addresses and lengths, never an object of the
program. Within a look the collector rests, so that it does not run on our account.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic_ns
from typing import Any

from msgspec.structs import replace

from leakscope.model import Gap, Holding, Link, Moment
from leakscope.observe.anatomy import describe
from leakscope.observe.containers import (
    Growing,
    Lengths,
    find_again,
    find_growing,
    group_containers,
    note_lengths,
)
from leakscope.observe.cycles import links_of_cycle
from leakscope.observe.gradient_cycles import links_of_gradient_cycle
from leakscope.observe.graphs import GraphSizes, find_growing_graphs, note_graphs
from leakscope.observe.holders import find_path
from leakscope.observe.leads import (
    GRADIENT_CYCLE,
    Lead,
    Weighed,
    leads_among,
    leads_of_containers,
    leads_of_graphs,
    our_references,
    take_kin,
    weighed,
)
from leakscope.observe.sites import SiteWindow
from leakscope.observe.survivors import Survivors

_CONTAINERS = ("list", "dict", "set", "deque", "OrderedDict", "defaultdict")
_VAGUE_FOLLOWED = 2
_VAGUE = ("cycle", "chain", GRADIENT_CYCLE)
_SEARCH_NS = 600_000_000
"""All searches of one look together begin no pass over the heap after so long."""
_MOST_GROWING = 200
_PATHS = 5
_ENOUGH_SHARE = 0.03
"""A holder of less than so much of the growth found is not worth the search for its path."""

_EXPLAINED = 0.6
"""Below this share of the growth, what was born and lives is asked too; the next look is deep."""


class Inquiry:
    """The looks of one process."""

    def __init__(self, process: str, now: Callable[[], Moment]) -> None:
        self.process = process
        self._now = now
        self._lengths: Lengths | None = None
        self._graphs: GraphSizes | None = None
        self._growing: list[Growing] = []
        self._since = 0
        self._survivors = Survivors()
        self._window = SiteWindow()
        self._is_deep = False
        self._history: dict[tuple[str, ...], dict[int, int]] = {}
        self.gaps: list[Gap] = []
        self.explained = 0.0
        """Share of the growth that the last look found holders for."""

    @property
    def own_bytes(self) -> int:
        return self._lengths.own_bytes if self._lengths is not None else 0

    @property
    def is_tracing(self) -> bool:
        return self._window.is_open

    def first_look(self, step: int) -> None:
        with collector_at_rest():
            objects = gc.get_objects()
            self._lengths = note_lengths(group_containers(objects, is_deep=False), step)
            self._graphs = note_graphs(objects)
            del objects

    def open_window(self, step: int, traced: int) -> None:
        """Note which containers have grown since the last look, and trace from here on."""
        assert self._lengths is not None
        before = self._lengths
        with collector_at_rest():
            objects = gc.get_objects()
            groups = group_containers(objects, is_deep=before.is_deep or self._is_deep)
            del objects
            self._lengths = note_lengths(groups, step, is_deep=before.is_deep or self._is_deep)
            del groups
            self._growing = find_growing(self._lengths, before)[:_MOST_GROWING]
        self._since = before.step
        self._survivors.begin(step, mark_after=max(traced // 2, 1))
        if self._survivors.why_not:
            self.gaps.append(Gap("survivors", self._survivors.why_not, self.process))
        self._window.open()

    def in_window(self, step: int) -> None:
        """At each step while the window is open."""
        self._survivors.mark(step)

    def second_look(self, step: int, grown_bytes: float) -> list[Holding]:
        """What has grown since the first look; `grown_bytes` is what it came to by the counters."""
        with collector_at_rest():
            try:
                leads = self._find_leads(step)
            finally:
                self._window.close()
            holdings = self._follow(leads, step, grown_bytes)
            del leads
        return holdings

    def abandon(self) -> None:
        """In a forked child, or at the end: leave nothing on."""
        self._window.close()
        self._survivors.abandon()

    def _find_leads(self, step: int) -> list[Lead]:
        assert self._lengths is not None
        assert self._graphs is not None
        steps = step - self._since
        born = self._survivors.end()
        born_in = self._survivors.steps
        objects = gc.get_objects()
        again = find_again(self._growing, objects, is_deep=self._lengths.is_deep)
        leads = leads_of_containers(again)
        del again
        growing, self._graphs = find_growing_graphs(objects, self._graphs, steps)
        leads += leads_of_graphs(growing)
        del growing
        del objects
        return leads + leads_among(born, born_in)

    def _follow(self, leads: list[Lead], step: int, grown_bytes: float) -> list[Holding]:
        """Weigh the leads, find who holds the largest, put those of one description together."""
        growing = {id(lead.it) for lead in leads if lead.kind == "container"}
        ours_to = our_references(leads)
        firm = [
            weighed(lead, growing, ours_to) for lead in leads if lead.kind in ("container", "graph")
        ]
        firm.sort(key=lambda one: -one.grown_bytes)
        self.explained = sum(one.grown_bytes for one in firm) / max(grown_bytes, 1.0)
        self._is_deep = self.explained < _EXPLAINED
        if self._is_deep:
            vague = [weighed(lead, growing, ours_to) for lead in leads if lead.kind in _VAGUE]
            vague.sort(key=lambda one: -one.grown_bytes)
            firm = sorted([*firm, *vague[:_VAGUE_FOLLOWED]], key=lambda one: -one.grown_bytes)
            del vague
        total = sum(one.grown_bytes for one in firm)
        ours = {id(leads), id(firm), *map(id, leads), *map(id, firm)}
        ours.update(id(mine) for lead in leads for mine in (lead.items, lead.keys))
        families: dict[tuple[str, ...], Holding] = {}
        deadline_ns = monotonic_ns() + _SEARCH_NS
        for _ in range(_PATHS):
            if not firm or firm[0].grown_bytes < _ENOUGH_SHARE * total:
                break
            first = firm.pop(0)
            kin = take_kin(first, firm) if first.lead.kind == "container" else []
            path = _path_to(first.lead, ours, deadline_ns)
            if first.lead.kind == "chain" and not _can_pile_up(path):
                continue
            holding = self._holding(first, kin, step, path)
            key = tuple(f"{link.kind} {link.scope} {link.name}" for link in holding.path)
            families[key] = _together(families[key], holding) if key in families else holding
        return [self._with_history(key, holding) for key, holding in families.items()]

    def _holding(
        self, first: Weighed, kin: list[Weighed], step: int, path: tuple[Link, ...]
    ) -> Holding:
        lead = first.lead
        item = "graph node" if lead.kind == "graph" else _kind_of_items(lead.items)
        tail = [Link("[x]", item, "item")] if lead.kind == "container" else []
        tail += [Link(via, what, "payload") for via, what in first.chain]
        family = [first, *kin]
        before = sum(one.lead.before for one in family)
        now = sum(one.lead.now for one in family)
        return Holding(
            at=self._now(),
            process=self.process,
            kind=lead.kind,
            path=(*path, *tail),
            grows_at=_grows_at(lead, path),
            item=item,
            counts=((step - lead.steps if lead.steps else self._since, before), (step, now)),
            bytes_each=sum(one.grown_bytes for one in family) / (now - before),
            shared_bytes=first.shared_bytes,
            parts=first.parts,
            holders=len(family),
            bound=lead.bound,
            sites=lead.sites,
        )

    def _with_history(self, key: tuple[str, ...], holding: Holding) -> Holding:
        """Add what earlier looks saw of the same holder; survivors are counted anew each time."""
        if holding.kind in _VAGUE:
            return holding
        history = self._history.setdefault(key, {})
        for step, count in holding.counts:
            history.setdefault(step, count)
        return replace(holding, counts=tuple(sorted(history.items())))


def _path_to(lead: Lead, ours: set[int], deadline_ns: int) -> tuple[Link, ...]:
    if lead.kind == "cycle":
        return links_of_cycle(lead.it)
    if lead.kind == GRADIENT_CYCLE:
        return links_of_gradient_cycle(lead.it)
    path = find_path(lead.it, is_ours=lambda one: id(one) in ours, deadline_ns=deadline_ns).links
    return path or (Link("held by something that was not found", describe(lead.it)),)


def _grows_at(lead: Lead, path: tuple[Link, ...]) -> int:
    """The end of the path; of what lives on without a container that was seen to grow, the
    container nearest to the root that it is an item of, or else the first name."""
    if lead.kind != "chain":
        return len(path) - 1
    for place, link in enumerate(path[1:], start=1):
        if link.kind == "item" and path[place - 1].type in _CONTAINERS:
            return place - 1
    return min(1, len(path) - 1)


def _can_pile_up(path: tuple[Link, ...]) -> bool:
    """A variable holds one thing at a time: what hangs on it directly is in use, not piled up."""
    return len(path) > 1 and path[0].kind not in ("garbage", "native")


def _together(one: Holding, other: Holding) -> Holding:
    """Two things of one description: the same attribute of several modules, say."""
    pairs = zip(one.counts, other.counts, strict=True)
    counts = tuple((step, first + second) for (step, first), (_, second) in pairs)
    grown, more = (_grown(holding) for holding in (one, other))
    total = grown * one.bytes_each + more * other.bytes_each
    return replace(
        one,
        counts=counts,
        bytes_each=total / max(grown + more, 1),
        holders=one.holders + other.holders,
        sites=one.sites or other.sites,
    )


def _grown(holding: Holding) -> int:
    return holding.counts[-1][1] - holding.counts[0][1]


def _kind_of_items(items: list[Any]) -> str:
    return describe(items[-1]) if items else "item"


@contextmanager
def collector_at_rest() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
