"""Which holder keeps how much of a process's growth, and which line stores into it.

Growth by path comes from heap snapshots: bytes below each holder, snapshot by snapshot. A share is
its part of what live memory grew by between the same two snapshots, so that shares of all that is
visible and what nobody accounts for add up to the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from leakscope.attribute.carried import is_carried_on
from leakscope.attribute.create_graph import find_create_graph
from leakscope.attribute.device import bytes_on, lines_without_holder, name_of_line
from leakscope.attribute.fingerprint import fingerprint
from leakscope.attribute.guard import has_capacity_guard
from leakscope.attribute.hooks import is_in_hook
from leakscope.attribute.keeper import find_keepers
from leakscope.attribute.native import native_suspects
from leakscope.attribute.places import site_of
from leakscope.attribute.suspect import Suspect
from leakscope.attribute.unweighed import give_the_rest
from leakscope.heap.evidence import Evidence
from leakscope.model import Holding, HoldingKind, Link, LinkKind, Site
from leakscope.record.reader import Recording

_SMALLEST_SHARE = 0.02
"""Of the growth: less is not reported."""
_SMALLEST_NATIVE_SHARE = 0.1
"""The same for objects that only native code holds: the interpreter itself holds some more."""
_ENOUGH_EXPLAINED = 0.5
"""Of the growth: below it, native memory and device lines are asked too."""

_REPLACED = (HoldingKind.ARRAY, HoldingKind.GRAPH)
"""One value that is larger each time: growth only if it is made from the one before."""

_NAMED = frozenset(
    {
        LinkKind.ATTRIBUTE, LinkKind.GLOBAL, LinkKind.CLASS, LinkKind.LOCAL, LinkKind.CLOSURE,
        LinkKind.CACHE, LinkKind.GENERATOR, LinkKind.DEFAULT,
    }
)  # fmt: skip


class Explained(NamedTuple):
    """What the snapshots of one process account for."""

    process: str
    suspects: tuple[Suspect, ...]

    @property
    def share(self) -> float:
        return min(sum(suspect.share for suspect in self.suspects), 1.0)


def explain_growth(
    recording: Recording,
    process: str,
    evidence: Evidence,
    *,
    grown_bytes: float,
    device: str | None = None,
) -> Explained:
    """The suspects of one process, the largest share first; together at most the whole growth.

    Args:
        recording: where native and device windows, and the sources, are.
        process: whose growth it is.
        evidence: what its heap snapshots show.
        grown_bytes: growth between the first and the last of them, by the counters.
        device: whose memory it is, if not the host's.
    """
    sources = sources_for(recording, process)
    steps = max(evidence.steps, 1)
    visible = sum(_grown(one, device) for one in evidence.holdings)
    total = max(grown_bytes, visible)
    found = []
    for holding in evidence.holdings:
        grown = _grown(holding, device)
        if total <= 0 or (grown <= 0 and not holding.opaque):
            continue
        suspect = suspect_of(holding, grown / total, sources)
        if holding.kind in _REPLACED and not _is_carried_on(suspect, sources):
            carried = _carried_by_another(holding, sources)
            if carried is None:
                continue  # larger than the one before it, of which nothing is kept
            suspect = suspect_of(carried, grown / total, sources)
        found.append(suspect)
    if device is None:
        found = give_the_rest(found, total / steps)
    if sum(suspect.share for suspect in found) < _ENOUGH_EXPLAINED and total > 0:
        if device is None:
            found += native_suspects(recording, process, total / steps, sources)
        else:
            found += _unheld_suspects(recording, process, device, total / steps, sources)
    found = _at_most_all(found)
    found = [suspect for suspect in found if suspect.share >= _smallest_share(suspect.holding)]
    found.sort(key=lambda suspect: -suspect.share)
    return Explained(process, tuple(found))


def _smallest_share(holding: Holding) -> float:
    is_native = holding.path[0].kind == LinkKind.NATIVE and holding.kind == HoldingKind.CHAIN
    return _SMALLEST_NATIVE_SHARE if is_native else _SMALLEST_SHARE


def _is_carried_on(suspect: Suspect, sources: Mapping[str, str]) -> bool:
    return suspect.named is None or is_carried_on(sources, suspect.named)


def _carried_by_another(holding: Holding, sources: Mapping[str, str]) -> Holding | None:
    """The same graph under the variable that is made from its own last value: of several that lead
    into it, that one keeps it, and the others are results of the step."""
    tail = holding.path[holding.grows_at + 1 :]
    for path in holding.also:
        other = replace(holding, path=(*path, *tail), grows_at=len(path) - 1)
        for named in _named_links(other):
            if named.file in sources and is_carried_on(sources, named):
                return other
    return None


def _grown(holding: Holding, device: str | None) -> float:
    """Bytes more in the last snapshot than in the first, in this memory."""
    if not holding.sizes:
        return 0.0
    grown = holding.sizes[-1][1] - holding.sizes[0][1]
    whole = holding.bytes_each
    return grown * bytes_on(holding, device) / whole if whole > 0 else 0.0


def _at_most_all(found: list[Suspect]) -> list[Suspect]:
    """Never more than there is: what goes on for ever has its part first."""
    endless = sum(one.share for one in found if not one.is_bounded)
    bounded = sum(one.share for one in found if one.is_bounded)
    if endless + bounded <= 1.0:
        return found
    of_endless = 1.0 / max(endless, 1.0)
    of_bounded = max(1.0 - endless, 0.0) / bounded if bounded else 0.0
    return [
        one._replace(share=one.share * (of_bounded if one.is_bounded else of_endless))
        for one in found
    ]


def _unheld_suspects(
    recording: Recording, process: str, device: str, measured: float, sources: Mapping[str, str]
) -> list[Suspect]:
    """Lines whose device memory stays in use without a holder in Python."""
    return [
        Suspect(
            holding=holding,
            share=a_step * holding.bytes_each / measured,
            count_per_step=a_step,
            site=site,
            keeper=None,
            named=None,
            fingerprint=name_of_line(holding),
            is_bounded="",
            snapshots=1,
        )
        for holding, a_step, site in lines_without_holder(recording, process, device, sources)
    ]


def explain_copies(recording: Recording, process: str) -> Explained:
    """Pages copied in a worker: by the Python objects that were there before the fork."""
    shared = [
        holding
        for holding in recording.holdings
        if holding.process == process and holding.kind == HoldingKind.SHARED_PAGES
    ]
    if not shared:
        return Explained(process, ())
    largest = max(shared, key=lambda holding: holding.counts[-1][1])
    return Explained(process, (suspect_of(largest, 1.0, sources_for(recording, process)),))


def sources_for(recording: Recording, process: str) -> Mapping[str, str]:
    """Texts of the program's files: this process's own, or any other's that has them."""
    merged: dict[str, str] = {}
    for texts in recording.sources_of.values():
        merged.update(texts)
    merged.update(recording.sources_of.get(process, {}))
    return merged


def suspect_of(holding: Holding, share: float, sources: Mapping[str, str]) -> Suspect:
    """A holder with the statement that stores into it, and why it may stop, if anything says so."""
    named, keeper = _kept_by(holding, sources)
    guard = has_capacity_guard(sources, named) if named is not None else None
    is_bounded = holding.bound or (f"line {guard.line} seems to bound it" if guard else "")
    return Suspect(
        holding=holding,
        share=share,
        count_per_step=holding.count_per_step,
        site=site_of(holding.sites, sources),
        keeper=keeper,
        named=named,
        fingerprint=fingerprint(holding.path, holding.grows_at, holding.kind),
        is_bounded=is_bounded,
        snapshots=_grown_in(holding),
        is_kept_in_hook=keeper is not None and is_in_hook(sources, keeper),
    )


def _grown_in(holding: Holding) -> int:
    """In how many snapshots it had more than in the one before."""
    return sum(after > before for (_, before), (_, after) in pairwise(holding.counts))


def _kept_by(holding: Holding, sources: Mapping[str, str]) -> tuple[Link | None, Site | None]:
    """The name nearest to the thing that grows under which a statement of the program stores, with
    that statement; the nearest name alone where none is found. What a library keeps inside of an
    object is stored by whoever stores the object."""
    named = list(_named_links(holding))
    if holding.kind == HoldingKind.GRADIENT_CYCLE:
        return (named[0] if named else None), find_create_graph(sources)
    for link in named:
        how = _how(holding, link)
        keepers = find_keepers(sources, link, grows=how, sites=holding.sites)
        if keepers:
            return link, keepers[0]
    return (named[0] if named else None), None


def _named_links(holding: Holding) -> Iterator[Link]:
    """The names at and above the thing that grows, the nearest first."""
    for link in reversed(holding.path[: holding.grows_at + 1]):
        if link.name and link.kind == LinkKind.GRADIENT:
            yield replace(link, kind=LinkKind.ATTRIBUTE)
        elif link.name and link.kind in _NAMED:
            yield link


def _how(holding: Holding, named: Link) -> str:
    """What the statement that keeps it looks like, for the search in the source."""
    if named.kind == LinkKind.CACHE:
        return "cache"
    if holding.kind == HoldingKind.GRAPH:
        return "graph"
    if holding.kind in (HoldingKind.CYCLE, HoldingKind.FROZEN):
        return "cycle"
    if holding.kind == HoldingKind.SHARED_PAGES:
        return "preloaded"
    names = [link.name for link in holding.path[: holding.grows_at + 1]]
    below = holding.path[names.index(named.name) : holding.grows_at + 1]
    is_opaque = any(link.type in ("cycle", "_tee", "generator") for link in below)
    return "opaque" if is_opaque else "container"
