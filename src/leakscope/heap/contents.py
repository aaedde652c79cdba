"""What is in memory at one snapshot: the largest holders, with what they hold and its role."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leakscope.heap.arrays import Numbers
from leakscope.heap.groups import TOP, Groups, levels_of
from leakscope.heap.links import links_of
from leakscope.model import Link
from leakscope.record.snapshot_file import EdgeRole

_MOST = 40
"""Holders that are listed, the largest first."""
_SMALLEST = 100
"""A holder of less than this part of everything counts with what it is part of."""
PARAMETER, GRADIENT, BUFFER = "parameter", "gradient", "buffer"
OPTIMIZER_STATE, SAVED, TENSOR = "optimizer state", "saved for backward", "tensor"
ARRAY, OBJECT = "array", "object"

_TENSOR_PARTS = ("tensors", "saved", "shared memory")
_BUFFERS = "_buffers"
_PARAMETER_TYPE = "torch.nn.parameter.Parameter"
_OPTIMIZER_TYPE = "torch.optim.optimizer.Optimizer"


class Content(NamedTuple):
    """One holder and all that it leads to first."""

    path: tuple[Link, ...]
    item: str
    """What it holds, if that is more than one of a kind; else the thing itself."""
    number: int
    size_bytes: int
    role: str
    group: int = TOP
    groups: tuple[int, ...] = ()
    """The holder's, and those below it that are not listed by themselves."""


def contents_of(groups: Groups, device: str | None = None) -> list[Content]:
    """The largest holders in the host's memory, or on a device."""
    own = _own_bytes(groups, device)
    below = own.copy()
    for level in reversed(levels_of(groups.parents)):
        np.add.at(below, groups.parents[level], below[level])
    return _Listing(groups, own, below).every()


def bytes_by_role(groups: Groups, device: str | None = None) -> dict[str, tuple[int, int]]:
    """How many things and how many bytes there are of each role."""
    roles = _Roles(groups)
    found: dict[str, tuple[int, int]] = {}
    for group, number, size in _payloads(groups):
        part, where = groups.payload_names[number]
        if size and where == (device or ""):
            role = roles.of(group, part)
            count, total = found.get(role, (0, 0))
            found[role] = (count + int(groups.counts[group]), total + size)
    return found


def on_devices(groups: Groups) -> int:
    """Bytes that lie in the memory of devices."""
    return sum(size for _, number, size in _payloads(groups) if groups.payload_names[number][1])


def _payloads(groups: Groups) -> list[tuple[int, int, int]]:
    columns = (groups.payload_groups, groups.payload_kinds, groups.payload_bytes)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _own_bytes(groups: Groups, device: str | None) -> Numbers:
    own: Numbers = groups.bytes.copy() if device is None else np.zeros(len(groups), np.int64)
    for group, number, size in _payloads(groups):
        where = groups.payload_names[number][1]
        if device is None and where:
            own[group] -= size
        elif device is not None and where == device:
            own[group] += size
    return own


class _Listing:
    def __init__(self, groups: Groups, own: Numbers, below: Numbers) -> None:
        self._groups, self._own, self._below = groups, own, below
        self._roles = _Roles(groups)
        order = np.argsort(groups.parents, kind="stable")
        self._order = order[order != TOP]
        parents = groups.parents[self._order]
        self._bounds = np.searchsorted(parents, np.arange(len(groups) + 1))
        self._smallest = max(int(below[TOP]) // _SMALLEST, 1)

    def every(self) -> list[Content]:
        found: list[Content] = []
        self._split(TOP, found)
        return sorted(found, key=lambda one: -one.size_bytes)[:_MOST]

    def _children(self, group: int) -> Numbers:
        found: Numbers = self._order[self._bounds[group] : self._bounds[group + 1]]
        return found

    def _split(self, group: int, found: list[Content]) -> None:
        """List a group, or what is below it where that is named and large."""
        open_ = [group]
        while open_:
            group = open_.pop()
            large = [
                int(child)
                for child in self._children(group)
                if self._below[child] >= self._smallest and self._is_named(int(child))
            ]
            rest = int(self._below[group] - sum(int(self._below[child]) for child in large))
            open_ += large
            if group != TOP and rest >= self._smallest:
                parts = self._below_but(group, large)
                found.append(self._content(group, rest)._replace(groups=parts))

    def _below_but(self, group: int, listed: list[int]) -> tuple[int, ...]:
        found = [group]
        for one in found:  # grows while it is read
            found += (int(child) for child in self._children(one) if child not in listed)
        return tuple(found)

    def _is_named(self, group: int) -> bool:
        """An item is no holder of its own, nor is what a tensor or a graph refers to."""
        role, _ = self._groups.label(group)
        return role not in (EdgeRole.ITEM, EdgeRole.KEY, EdgeRole.ELEMENT) and (
            role < EdgeRole.STORAGE or role > EdgeRole.HOOK
        )

    def _content(self, group: int, size: int) -> Content:
        groups = self._groups
        path = [group]
        while groups.parents[path[0]] > TOP:
            path.insert(0, int(groups.parents[path[0]]))
        links = links_of(groups, path)
        items = self._children(group)
        largest = int(items[np.argmax(self._below[items])]) if len(items) else group
        is_item = largest != group and not self._is_named(largest)
        shown = links_of(groups, [*path, largest])[-1].type if is_item else links[-1].type
        count = int(groups.counts[largest if is_item else group])
        return Content(links, shown, count, size, self._roles.of(largest, ""), group)


class _Roles:
    """What tensors and arrays are for, by the path that leads to them."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        by_address = {kind.address: kind.full_name for kind in groups.kind_table if kind.address}
        self._bases = [
            {by_address.get(base, "") for base in kind.mro} for kind in groups.kind_table
        ]

    def of(self, group: int, part: str) -> str:
        """The role of what a group holds; `part` is what its bytes are."""
        if part == "arrays":
            return ARRAY
        at = group
        while at > TOP:
            role, name = self._groups.label(at)
            bases = self._bases[int(self._groups.kinds[at])]
            if role == EdgeRole.SAVED:
                return SAVED
            if role == EdgeRole.GRAD:
                return GRADIENT
            if _PARAMETER_TYPE in bases:
                return PARAMETER
            if name == _BUFFERS:
                return BUFFER
            if _OPTIMIZER_TYPE in bases:
                return OPTIMIZER_STATE
            at = int(self._groups.parents[at])
        return TENSOR if part in _TENSOR_PARTS or part == "nodes" else OBJECT
