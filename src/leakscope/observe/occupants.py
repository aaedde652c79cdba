"""What fills memory at this moment, by role, holder and line: the inside of a black box.

A device's allocator lists the blocks it has given out; each is matched by its address with the
tensor that lies there. What has no tensor is listed too: the pools of CUDA graphs, workspaces of
libraries, storages that only C++ holds. In the host's memory nobody has such a list, and tensors,
and the containers with the most in them, are told.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from time import monotonic_ns
from typing import Any, NamedTuple

from leakscope.model import Link, Occupant, Tally
from leakscope.observe.anatomy import describe
from leakscope.observe.containers import length_of
from leakscope.observe.device_sites import frames_of
from leakscope.observe.devices import Block, Stack
from leakscope.observe.old_heap import Heap
from leakscope.observe.holders import find_path
from leakscope.observe.roles import SAVED, TENSOR, Tenant, Tenants, find_tenants
from leakscope.observe.weigh import weigh
from leakscope.record.format import storable

_MOST_TOLD = 24
_PATHS = 2
_MARGIN_NS = 60_000_000
"""A pass over the heap that begins before the deadline takes up to this long."""
_LONGEST_CONTAINERS = 3
_ITEMS_WEIGHED, _MOST_VISITED = 4, 400
_WORTH_TELLING = 1 << 20

GRAPH_POOL, WORKSPACE, UNMATCHED = "graph pool", "workspace", "none"
_WORKSPACES = frozenset({32 << 20, (4096 * 2 + 16 * 8) << 10, 1 << 20})
"""What PyTorch asks for on behalf of cuBLAS and cuBLASLt, once a stream: 32 MiB each on Hopper,
8.1 MiB before it (aten/src/ATen/cuda/CublasHandlePool.cpp), 1 MiB as seen on an H200."""

Group = tuple[str, str, str, Stack]
"""Role, description, holder and where it was asked for."""


class Occupancy(NamedTuple):
    occupants: tuple[Occupant, ...]
    matched_bytes: int
    total_bytes: int


def look_at_device(
    device: str, blocks: Iterable[Block], deadline_ns: int, *, paths: int = _PATHS
) -> Occupancy:
    """Everything in use on one device; so many holders are searched for."""
    tenants = find_tenants(deadline_ns - _MARGIN_NS)
    groups: dict[Group, tuple[int, int]] = {}
    matched = total = 0
    for block in blocks:
        if block.device != device:
            continue
        tenant = tenants.by_address.get(block.address)
        total += block.bytes
        matched += block.bytes if tenant is not None else 0
        _count(groups, _group_of(tenant, block), block.bytes)
    occupants = _told(_by_line(groups), tenants, device, deadline_ns, paths)
    del tenants
    return Occupancy(occupants, matched, total)


def look_at_host(deadline_ns: int) -> Occupancy:
    tenants = find_tenants(deadline_ns - _MARGIN_NS)
    groups: dict[Group, tuple[int, int]] = {}
    for tenant in tenants.by_address.values():
        if tenant.device is None:
            _count(groups, (tenant.role, tenant.what, tenant.holder, ()), tenant.bytes)
    told = list(_told(groups, tenants, None, deadline_ns))
    del tenants
    if monotonic_ns() < deadline_ns - _MARGIN_NS:
        told += _containers(deadline_ns)
    told.sort(key=lambda one: -one.bytes)
    total = sum(one.bytes for one in told)
    return Occupancy(tuple(told), total, total)


def tallies_of(occupancy: Occupancy) -> tuple[Tally, ...]:
    """The same by role alone, for a census."""
    totals: dict[str, tuple[int, int]] = {}
    for one in occupancy.occupants:
        count, size = totals.get(one.role, (0, 0))
        totals[one.role] = (count + one.count, size + one.bytes)
    return tuple(Tally("torch.Tensor", role, count, size) for role, (count, size) in totals.items())


def _group_of(tenant: Tenant | None, block: Block) -> Group:
    if tenant is None and not block.is_in_graph_pool and block.bytes in _WORKSPACES:
        return (WORKSPACE, "", "cuBLAS or its like, by its size", ())
    if tenant is None:
        return (GRAPH_POOL if block.is_in_graph_pool else UNMATCHED, "", "", block.stack)
    # Of what a model is made of, one line says enough; what it has made is told by what it is.
    what = tenant.what if tenant.role in (TENSOR, SAVED) else ""
    return (tenant.role, what, tenant.holder, block.stack if tenant.role == TENSOR else ())


def _by_line(groups: dict[Group, tuple[int, int]]) -> dict[Group, tuple[int, int]]:
    """Stacks are known of what was made in a window only: where all that are known are one line's,
    the others of that kind are its too."""
    stacks: dict[tuple[str, str, str], set[Stack]] = {}
    for role, what, holder, stack in groups:
        if stack:
            stacks.setdefault((role, what, holder), set()).add(stack)
    merged: dict[Group, tuple[int, int]] = {}
    for (role, what, holder, stack), (count, size) in groups.items():
        known = stacks.get((role, what, holder), set())
        only = next(iter(known)) if len(known) == 1 and what else stack
        had = merged.get((role, what, holder, only), (0, 0))
        merged[role, what, holder, only] = (had[0] + count, had[1] + size)
    return merged


def _count(groups: dict[Group, tuple[int, int]], group: Group, size: int) -> None:
    count, known = groups.get(group, (0, 0))
    groups[group] = (count + 1, known + size)


def _told(
    groups: dict[Group, tuple[int, int]],
    tenants: Tenants,
    device: str | None,
    deadline_ns: int,
    paths: int = _PATHS,
) -> tuple[Occupant, ...]:
    ranked = sorted(groups.items(), key=lambda one: -one[1][1])
    held = _search_holders(ranked, tenants, device, deadline_ns, paths)
    told: dict[Group, tuple[int, int]] = {}
    for place, ((role, what, holder, stack), (count, size)) in enumerate(ranked):
        by = held.get(what, holder) if role == TENSOR else holder
        group = (role, what, by, stack) if place < _MOST_TOLD else (role, "others", "", ())
        known = told.get(group, (0, 0))
        told[group] = (known[0] + count, known[1] + size)
    return tuple(
        Occupant(role, storable(what), storable(holder), count, size, frames_of(stack))
        for (role, what, holder, stack), (count, size) in told.items()
    )


def _search_holders(
    ranked: list[tuple[Group, tuple[int, int]]],
    tenants: Tenants,
    device: str | None,
    deadline_ns: int,
    paths: int,
) -> dict[str, str]:
    """Of the largest kinds of tensors that are nobody's in particular: who holds one of them."""
    held: dict[str, str] = {}
    ours = {id(tenants.samples), id(tenants)}
    for (role, what, _, _), _ in ranked:
        if role != TENSOR or what in held:
            continue
        if len(held) >= paths or monotonic_ns() > deadline_ns - _MARGIN_NS:
            break
        sample = tenants.samples.get((what, device))
        if sample is not None:
            held[what] = _path_to(sample, ours, deadline_ns)
            del sample
    return held


def _path_to(target: Any, ours: set[int], deadline_ns: int) -> str:
    found = find_path(
        target,
        is_ours=lambda other: id(other) in ours,
        deadline_ns=deadline_ns - _MARGIN_NS,
    )
    return words_of(found.links)


def words_of(links: tuple[Link, ...]) -> str:
    """`module train · .history list · [x] Tensor [] float32`."""
    return " · ".join(f"{link.via} {link.type}".strip() for link in links)


def _containers(deadline_ns: int) -> list[Occupant]:
    """The longest containers of things that are no tensors, and what they lead to."""
    heap = Heap(with_hidden=False)
    longest = sorted(
        ((length_of(one, base), base, one) for base, some in heap.containers for one in some),
        key=lambda one: -one[0],
    )[:_LONGEST_CONTAINERS]
    del heap
    told = []
    for length, base, container in longest:
        sample = _some_of(container, base)
        weight = weigh(sample, most_objects=_MOST_VISITED)
        if weight.parts.get("tensors", 0.0) > weight.exclusive_bytes / 2:
            continue
        item = describe(sample[0]) if sample else "nothing"
        holder = describe(container)
        if monotonic_ns() < deadline_ns - _MARGIN_NS:
            holder = _path_to(container, {id(longest), id(sample)}, deadline_ns) or holder
        size = int(length * weight.exclusive_bytes)
        if size < _WORTH_TELLING:
            continue
        told.append(Occupant("container", storable(item), storable(holder), length, size))
    return told


def _some_of(container: Any, base: Any) -> list[Any]:
    """Through the built-in type: a class of the program's may count and iterate in its own way."""
    values = iter(dict.values(container)) if base is dict else base.__iter__(container)
    return list(islice(values, _ITEMS_WEIGHED))
