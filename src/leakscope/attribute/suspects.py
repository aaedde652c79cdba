"""Growth in, suspects out: which holder keeps how much of it, and what nobody accounts for.

A holder's rate is what it keeps per item times how many more it keeps per step, both seen between
looks. Its share is that rate over the slope of the same process's own counters around those looks,
so that it does not matter what counts as a step elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from leakscope.attribute.carried import is_carried_on
from leakscope.attribute.create_graph import find_create_graph
from leakscope.attribute.device import bytes_on, lines_without_holder, name_of_line
from leakscope.attribute.fingerprint import fingerprint
from leakscope.attribute.guard import has_capacity_guard
from leakscope.attribute.hooks import is_in_hook
from leakscope.attribute.keeper import find_keepers
from leakscope.attribute.measured import (
    BLOCK_BYTES,
    CLOCK,
    COUNTS_OF_A_LOOK,
    ENOUGH_POINTS,
    Measured,
    live_per_step,
    looked_at,
    slope,
    ways_to_measure,
)
from leakscope.attribute.native import native_suspects
from leakscope.attribute.places import site_of
from leakscope.attribute.recounted import (
    FOLLOWED,
    Counts,
    counted_later,
    times_as_heavy,
    weighed_later,
    why_it_stops,
)
from leakscope.attribute.suspect import Suspect, topmost
from leakscope.attribute.unweighed import give_the_rest
from leakscope.judge.axis import found_in_steps, of_last_look
from leakscope.model import Holding, Link, Site
from leakscope.record.reader import Recording

_SMALLEST_SHARE = 0.02
_ENOUGH_EXPLAINED = 0.5
_NEARLY_ALL = 0.9
"""From here on nothing is to be gained by another measure of the growth. A choice."""
_SMALL_IN_PASSING = 0.1
"""Of the growth. `samples = [...]`, made anew in every step and no longer than the step before, was
told of beside the leak, with 0.03 of it, where the first look met another list at its address. By
the clock it may be all: the children of a node, in trees that wait for the collector, were called a
leak (zoo/cycles-in-plain-python)."""
_AGREES = 0.2
"""Bytes per item are a weight (nodes at 640 bytes, malloc's rounding), good to some ten percent; no
other value was tried."""
_AS_MANY = 0.8
"""Of the entries that were to come. A choice."""
SHARED_PAGES = "shared-pages"
PILE = "pile"

_MAY_BE_MADE_ANEW = ("array", "graph")
"""A larger batch, or the loss over a longer sequence. If a loss leads to a state that is carried
on, it is the state that was found: the smallest graph that somebody holds."""

_NAMED = ("attribute", "global", "class", "local", "closure", "cache", "generator", "default")


class Explained(NamedTuple):
    """What the looks at one process account for."""

    process: str
    suspects: tuple[Suspect, ...]

    @property
    def share(self) -> float:
        return min(sum(suspect.share for suspect in self.suspects), 1.0)


def suspects_of(recording: Recording, process: str) -> list[Suspect]:
    """The holders of the last look, whatever the counters say; without shares."""
    sources = sources_for(recording, process)
    return [
        _suspect(holding, 0.0, sources, counted_later(recording, holding))
        for holding in _latest(recording, process)
    ]


def explain_growth(
    recording: Recording,
    process: str,
    *,
    is_copy_on_write: bool = False,
    is_resident: bool = False,
    per_step: float | None = None,
    device: str | None = None,
    is_reserved: bool = False,
    block_bytes: float = BLOCK_BYTES,
) -> Explained:
    """The suspects of one process, the largest share first; together at most the whole growth.

    `is_resident`: it is resident memory that grows, so it is that which they have to account for;
    what little malloc's counters grew meanwhile says nothing about it. `per_step`: the growth,
    where it is known better than by the counters. `device`: whose memory it is, if not the
    host's; `is_reserved`: it is what its allocator has reserved that grows, by the pools of CUDA
    graphs. `block_bytes`: of one of Python's blocks."""
    sources = sources_for(recording, process)
    if is_copy_on_write:
        return _explain_copies(recording, process, sources)
    latest = _latest(recording, process)
    ways = ways_to_measure(recording, process, latest, device, is_reserved, block_bytes)
    way = max(ways, key=lambda one: _accounted_for(latest, device, one))
    measured = way.per_step
    if is_resident:
        rows = recording.columns(process, looked_at(recording, process))
        measured = max(measured, slope(rows, "rss_bytes", 0, sys.maxsize) or 0.0)
    if per_step is not None:
        measured = per_step
    found = []
    in_passing = 1.0 if looked_at(recording, process) == CLOCK else _SMALL_IN_PASSING
    for holding in latest:
        count = way.count_of(holding)
        rate = count * bytes_on(holding, device)
        if measured <= 0 or count <= 0 or (rate <= 0 and not holding.opaque):
            continue
        later = counted_later(recording, holding)
        suspect = _suspect(holding, rate / measured, sources, later)
        suspect = suspect._replace(weights=weighed_later(recording, holding))
        if min(suspect.share, 1.0) <= in_passing and _is_in_passing(holding):
            continue
        if _was_another(holding, later):
            continue
        named = suspect.named if holding.kind in _MAY_BE_MADE_ANEW else None
        if named is not None and not is_carried_on(sources, named):
            continue  # larger than the one before it, of which nothing is kept
        found.append(suspect)
    found = topmost(found)
    if device is None:
        found = give_the_rest(found, measured)
        if per_step is None and not is_resident:
            found = _by_later_growth(found, measured, recording, latest, block_bytes)
    if sum(suspect.share for suspect in found) < _ENOUGH_EXPLAINED:
        if device is None:
            found += native_suspects(recording, process, measured, sources)
        elif measured > 0:
            found += _unheld_suspects(recording, process, device, measured, sources)
    found = _at_most_all(found)
    found = [suspect for suspect in found if suspect.share >= _SMALLEST_SHARE]
    found.sort(key=lambda suspect: -suspect.share)
    return Explained(process, tuple(found))


def _at_most_all(found: list[Suspect]) -> list[Suspect]:
    """Two holders of the same things, or a weight too high: never more than there is. What goes on
    for ever has its part first, and what will stop by itself the rest."""
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


def _accounted_for(latest: Sequence[Holding], device: str | None, way: Measured) -> float:
    """The share of the growth that the holders have, by this way to measure it."""
    held = sum(way.count_of(holding) * bytes_on(holding, device) for holding in latest)
    return min(held / way.per_step, 1.0) if way.per_step > 0 else 0.0


def _is_in_passing(holding: Holding) -> bool:
    """It was longer once, and was not seen to grow while a window was open. What is kept once an
    epoch looks the same, but is more of the growth; by the clock it is longer at every look."""
    if holding.kind != "container" or len(holding.counts) < COUNTS_OF_A_LOOK:
        return False
    if holding.opaque:
        return False  # what it weighs is not known, so neither is its share
    within = zip(holding.counts[1::2], holding.counts[2::2], strict=False)
    rises = sum(after > before for (_, before), (_, after) in pairwise(holding.counts))
    return rises <= 1 and all(after <= before for (_, before), (_, after) in within)


def _was_another(holding: Holding, later: Counts) -> bool:
    """It was empty, was not seen to grow, and has not grown since: another lay at its address when
    it was first counted. Made after LS109 had spoken once about raw blocks of a GPU, in a program
    that builds one model; what was found there was not seen, so that this is a guess."""
    is_new = holding.counts[0][1] == 0 and _is_in_passing(holding)
    return is_new and bool(later) and later[-1][1] <= holding.counts[-1][1]


def _by_later_growth(
    found: list[Suspect],
    measured: float,
    recording: Recording,
    latest: Sequence[Holding],
    block_bytes: float,
) -> list[Suspect]:
    """Around its first looks a program may still warm up, and little of that is the holders'. Where
    what they take per step is what memory has grown by since the last look, or in the second half
    of the run, that is what they are part of: two figures from different counters that agree. Or
    they were counted later on, and go on as they did."""
    share = sum(suspect.share for suspect in found)
    if not found or share >= _NEARLY_ALL or looked_at(recording, latest[0].process) == CLOCK:
        return found
    process, last = latest[0].process, max(holding.counts[-1][0] for holding in latest)
    columns = recording.columns(process, looked_at(recording, process))
    steps = [step for step in columns.get("step", ()) if step is not None]
    since = min(last, steps[-1] // 2) if steps else last
    if sum(step > since for step in steps) < ENOUGH_POINTS:
        return found
    later = live_per_step(recording, process, since, sys.maxsize, block_bytes)
    counted = [_count_later(suspect, steps[-1]) for suspect in found]
    by_count = [
        one._replace(share=one.share * count / one.count_per_step, count_per_step=count)
        if count is not None
        else one
        for one, count in zip(found, counted, strict=True)
    ]
    # The growth is that of the middle of the stretch, where it changes.
    middle = (since + steps[-1]) / 2
    by_count = [
        one._replace(share=one.share * times_as_heavy(one.holding, one.weights, middle))
        for one in by_count
    ]
    ratio = sum(one.share for one in by_count) * measured / later if later > 0 else 0.0
    goes_on = None not in counted
    if not 1.0 - _AGREES <= ratio <= 1.0 + _AGREES and not (goes_on and 0 < ratio < 1):
        return found
    return [one._replace(share=one.share * measured / later) for one in by_count]


def _count_later(suspect: Suspect, last_step: int) -> float | None:
    """How many it has gained per step since its last look, if it was counted nearly to the end and
    gains as many as between its looks. What is kept once in four steps is 6 more after 26 of them,
    which is a twelfth too few."""
    if not suspect.later or suspect.later[-1][0] < FOLLOWED * last_step:
        return None
    (since, before), (until, after) = suspect.holding.counts[-1], suspect.later[-1]
    count = (after - before) / (until - since)
    return count if count >= _AS_MANY * suspect.count_per_step > 0 else None


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
            looks=1,
        )
        for holding, a_step, site in lines_without_holder(recording, process, device, sources)
    ]


def _explain_copies(recording: Recording, process: str, sources: Mapping[str, str]) -> Explained:
    """Pages copied in a worker: by the Python objects that were there before the fork."""
    shared = [
        holding
        for holding in recording.holdings
        if holding.process == process and holding.kind == SHARED_PAGES
    ]
    if not shared:
        return Explained(process, ())
    largest = max(shared, key=lambda holding: holding.counts[-1][1])
    return Explained(process, (_suspect(largest, 1.0, sources),))


def sources_for(recording: Recording, process: str) -> Mapping[str, str]:
    """Texts of the program's files: this process's own, or any other's that has them."""
    merged: dict[str, str] = {}
    for texts in recording.sources_of.values():
        merged.update(texts)
    merged.update(recording.sources_of.get(process, {}))
    return merged


def _latest(recording: Recording, process: str) -> list[Holding]:
    """Those of the last look."""
    ours = [one for one in found_in_steps(recording, process) if one.kind != SHARED_PAGES]
    # Piles are counted to the end of the run, after the last look.
    piles = [one for one in ours if one.kind == PILE][-1:]
    return of_last_look([one for one in ours if one.kind != PILE]) + piles


def _suspect(
    holding: Holding, share: float, sources: Mapping[str, str], later: Counts = ()
) -> Suspect:
    named = _named_link(holding)
    guard = has_capacity_guard(sources, named) if named is not None else None
    keeper = _keeper(holding, named, sources)
    is_bounded = holding.bound or (f"line {guard.line} seems to bound it" if guard else "")
    return Suspect(
        holding=holding,
        share=share,
        count_per_step=holding.count_per_step,
        site=site_of(holding.sites, sources),
        keeper=keeper,
        named=named,
        fingerprint=fingerprint(holding.path, holding.grows_at, holding.kind),
        is_bounded=is_bounded or why_it_stops(holding, later),
        looks=_looks(holding),
        later=later,
        is_kept_in_hook=keeper is not None and is_in_hook(sources, keeper),
    )


def _looks(holding: Holding) -> int:
    """At how many looks it had grown. A container has two counts a look: at the opening of the
    window, and at its end."""
    grown = sum(after > before for (_, before), (_, after) in pairwise(holding.counts))
    return (grown + 1) // 2 if len(holding.counts) >= COUNTS_OF_A_LOOK else grown


def _keeper(holding: Holding, named: Link | None, sources: Mapping[str, str]) -> Site | None:
    if holding.kind == "gradient cycle":
        return find_create_graph(sources)
    if named is None:
        return None
    keepers = find_keepers(sources, named, grows=_how(holding, named), sites=holding.sites)
    return keepers[0] if keepers else None


def _named_link(holding: Holding) -> Link | None:
    """The nearest name at or above the thing that grows; names in the source are what a reader can
    search for."""
    for link in reversed(holding.path[: holding.grows_at + 1]):
        if link.name and link.kind in _NAMED:
            return link
    return None


def _how(holding: Holding, named: Link | None) -> str:
    if named is not None and named.kind == "cache":
        return "cache"
    if holding.kind in ("graph", "cycle"):
        return holding.kind
    if holding.kind == SHARED_PAGES:
        return "preloaded"
    below = holding.path[holding.path.index(named) : holding.grows_at + 1] if named else ()
    is_opaque = any(link.type in ("cycle", "_tee", "generator") for link in below)
    return "opaque" if is_opaque else "container"
