"""Growing object groups as holdings: what grows, who holds it, and what one item keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from leakscope.heap.arrays import Booleans
from leakscope.heap.cycles import links_around
from leakscope.heap.groups import Groups, levels_of, read_groups
from leakscope.heap.growth import Growing, Growth, find_growth
from leakscope.heap.links import Said, links_of, say
from leakscope.heap.measure import CYCLE
from leakscope.heap.merge import path_of
from leakscope.heap.unreached import HIDDEN_CYCLE
from leakscope.model import (
    LARGEST_BLOCK_BYTES,
    Frame,
    Holding,
    HoldingKind,
    Link,
    LinkKind,
    SiteTally,
    Snapshot,
)
from leakscope.record.snapshot_file import EdgeRole

_MOST_PATHS = 16
"""Other paths into a growing graph that are told."""
_MOST_SITES = 4
"""Allocation sites that are told of one holder, the most frequent first."""

_KINDS = {
    "container": HoldingKind.CONTAINER,
    "graph": HoldingKind.GRAPH,
    "chain": HoldingKind.CHAIN,
    "array": HoldingKind.ARRAY,
    "native": HoldingKind.CHAIN,
}


def holdings_of(files: Sequence[Path], headers: Sequence[Snapshot]) -> list[Holding]:
    """What grew over these snapshots of one process, the largest first."""
    stamps = tuple(
        (str(file), header.at.step or 0) for file, header in zip(files, headers, strict=True)
    )
    growth = _growth(stamps)
    if growth is None:
        return []
    return [_holding(one, headers, files[-1]) for one in growth.growing]


@lru_cache(maxsize=4)
def _growth(stamps: tuple[tuple[str, int], ...]) -> Growth | None:
    """Growth over the complete ones of these snapshots. A live view asks again and again."""
    found: list[Groups] = []
    steps: list[int] = []
    for file, step in stamps:
        groups = read_groups(Path(file)) if Path(file).exists() else None
        if groups is not None:
            found.append(groups)
            steps.append(step)
    return find_growth(found, steps) if len(found) > 1 else None


def _holding(growing: Growing, headers: Sequence[Snapshot], file: Path) -> Holding:
    last = headers[-1]
    said = say(growing)
    kind = _kind(growing, said, headers)
    if growing.kind == CYCLE and growing.addresses:
        said = _with_cycle(said, links_around(file, growing.addresses[0]))
    is_one = kind is HoldingKind.ARRAY
    more = growing.bytes_grown if is_one else max(growing.items_grown, 1)
    below = _below(growing.groups, growing.path[growing.item])
    small, small_bytes = _small_objects(growing.groups, below)
    count = max(growing.counts[-1][1], 1)
    shown = len(said.path) - (len(growing.path) - growing.item - 1)
    return Holding(
        at=last.at,
        process=last.process,
        kind=kind,
        path=(*said.path[:shown], *_payload(said.path[shown:])),
        grows_at=said.grows_at,
        item=said.item,
        counts=growing.bytes if is_one else growing.counts,
        bytes_each=growing.bytes_grown / max(more, 1),
        sizes=growing.bytes,
        parts={part: size / max(more, 1) for part, size in growing.parts.items() if size > 0},
        blocks_each=0.0 if is_one else small / count,
        in_blocks=0.0 if is_one else small_bytes / count,
        on_device={device: size / max(more, 1) for device, size in growing.devices.items()},
        holders=growing.holders,
        bound=_bound(growing, said),
        sites=_sites(growing, below),
        opaque=_opaque(growing.groups, below, count),
        also=_other_graphs(growing) if kind is HoldingKind.GRAPH else (),
    )


def _other_graphs(growing: Growing) -> tuple[tuple[Link, ...], ...]:
    """Paths to other tensors with a graph: of several variables that lead into a growing graph, one
    carries it from step to step."""
    groups = growing.groups
    own = growing.path[growing.holder]
    found: list[tuple[Link, ...]] = []
    for group in range(1, len(groups)):
        role, _ = groups.label(group)
        if role != EdgeRole.GRAD_FN or len(found) == _MOST_PATHS:
            continue
        tensor = int(groups.parents[group])
        if tensor != own:
            found.append(links_of(groups, path_of(groups.parents, tensor)))
    return tuple(found)


def _kind(growing: Growing, said: Said, headers: Sequence[Snapshot]) -> HoldingKind:
    if growing.kind == CYCLE:
        before, after = (
            header.values.get("frozen_count", 0) for header in (headers[0], headers[-1])
        )
        if after - before >= max(growing.items_grown, 1):
            return HoldingKind.FROZEN  # by the program, which put it out of the collector's reach
        is_on = headers[-1].values.get("gc_enabled", 1)
        return HoldingKind.GARBAGE if is_on else HoldingKind.CYCLE
    if said.path[0].via == HIDDEN_CYCLE:
        return HoldingKind.GRADIENT_CYCLE
    return _KINDS[growing.kind]


def _with_cycle(said: Said, cycle: tuple[Link, ...]) -> Said:
    """The same with the way around the cycle, which begins with the attribute that closes it."""
    at = said.grows_at + 1
    path = (*said.path[:at], *cycle, *said.path[at:])
    is_named = bool(cycle) and bool(cycle[0].name)
    return Said(path, at if is_named else said.grows_at, said.item)


def _payload(links: tuple[Link, ...]) -> Iterator[Link]:
    for link in links:
        yield Link(link.via, link.type, LinkKind.PAYLOAD)


def _bound(growing: Growing, said: Said) -> str:
    if growing.limit is None:
        return ""
    return f"it is a {said.path[said.grows_at].type} with at most {growing.limit:,} items"


# ── what lies below the items ──


def _below(groups: Groups, top: int) -> Booleans:
    """Which groups are `top` or below it."""
    found = np.zeros(len(groups), np.bool_)
    found[top] = True
    for level in levels_of(groups.parents):
        found[level] |= found[groups.parents[level]]
    return found


def _small_objects(groups: Groups, below: Booleans) -> tuple[int, int]:
    """How many of Python's small blocks lie in these groups, and their bytes."""
    members = groups.members
    sizes = members.bytes[below[members.groups]]
    small = sizes[(sizes > 0) & (sizes <= LARGEST_BLOCK_BYTES)]
    return len(small), int(small.sum())


def _opaque(groups: Groups, below: Booleans, items: int) -> dict[str, float]:
    """How many things there are for each item whose memory nobody can tell: traced graphs, compiled
    functions."""
    found: Counter[str] = Counter()
    for group, number in zip(
        groups.payload_groups.tolist(), groups.payload_kinds.tolist(), strict=True
    ):
        if groups.payload_names[number][0] == "opaque" and below[group]:
            found[groups.kind(group).name] += int(groups.counts[group])
    return {name: count / items for name, count in found.items()}


def _sites(growing: Growing, below: Booleans) -> tuple[SiteTally, ...]:
    """Where the items were made: their payload, if it was made in the tracing window, or else the
    items themselves, or anything that came with them."""
    groups = growing.groups
    sites = groups.meta.sites
    if not sites:
        return ()
    traced = np.isin(groups.members.addresses, np.array(list(sites), np.uint64))
    deepest_first = growing.path[growing.item :][::-1]
    for group in (*deepest_first, -1):
        is_asked = below[groups.members.groups] if group < 0 else groups.members.groups == group
        addresses = groups.members.addresses[traced & is_asked].tolist()
        if addresses:
            stacks = Counter(sites[address] for address in addresses)
            return tuple(
                SiteTally(tuple(Frame(*frame) for frame in groups.meta.stacks[number]), count)
                for number, count in stacks.most_common(_MOST_SITES)
            )
    return ()
