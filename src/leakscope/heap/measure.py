"""Measure one thing that grows: who holds it, how many items, how many bytes of what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from leakscope.heap.aligned import Aligned
from leakscope.heap.arrays import Booleans, Numbers
from leakscope.heap.growing import Growing
from leakscope.heap.hidden_items import HiddenItems
from leakscope.heap.newcomers import new_addresses
from leakscope.heap.see_through import ROOT_ROLE
from leakscope.model import Blocks, LinkKind
from leakscope.record.snapshot_file import EdgeRole

CONTAINER, GRAPH, CHAIN, ARRAY = "container", "graph", "chain", "array"
CYCLE, NATIVE = "cycle", "native"
"""What `Growing.kind` can be."""

ANONYMOUS = (EdgeRole.ITEM, EdgeRole.KEY, EdgeRole.ELEMENT)
_FIRST_FRAMEWORK_ROLE = int(EdgeRole.STORAGE)


class Measure:
    """Measures rows of aligned snapshots."""

    def __init__(self, aligned: Aligned, steps: Sequence[int]) -> None:
        self._aligned = aligned
        self._steps = list(steps)
        self._last = aligned.snapshots[-1]
        self._grown: Numbers = aligned.below[-1] - aligned.below[0]

    def items(self, rows: list[int], hidden: HiddenItems) -> Growing:
        """More and more items of one holder, which may be of several types."""
        aligned = self._aligned
        main, *others = sorted(rows, key=lambda row: -int(self._grown[row]))
        further = list(self._further(main))
        insides: list[int] = []
        for row in rows:
            if (outer := hidden.outer_below(row)) >= 0:
                # Most of what it keeps is where only native code leads.
                insides = hidden.inside[outer]
                main, others = row, [one for one in rows if one != row]
                further = [*aligned.path(outer)[len(aligned.path(row)) :], insides[0]]
                further += self._further(insides[0])
        path = aligned.path(main)
        parent = int(aligned.parents[main])
        is_container = bool(aligned.is_plain[parent]) and aligned.roles[main] in ANONYMOUS
        own = parent if is_container else 0
        return self._measure(
            kind=self._kind(path),
            path=[*path, *further],
            holder=self._holder(path, max(len(path) - 2, 0)),
            item=len(path) - 1,
            counts=self._counts([main, *others], own),
            rows=[main, *others, *insides],
            own=own,
        )

    def one(self, row: int) -> Growing:
        """One thing that gets larger."""
        aligned = self._aligned
        path = aligned.path(row)
        is_container = bool(aligned.is_plain[row])
        kind = self._kind(path)
        if kind in (CONTAINER, GRAPH, CHAIN) and not is_container:
            kind = ARRAY
        return self._measure(
            kind=kind,
            path=path,
            holder=self._holder(path, len(path) - 1),
            item=len(path) - 1,
            counts=(aligned.lengths if is_container else aligned.counts)[:, row].tolist(),
            rows=[],
            own=row,
        )

    def _measure(
        self,
        *,
        kind: str,
        path: list[int],
        holder: int,
        item: int,
        counts: list[int],
        rows: list[int],
        own: int,
    ) -> Growing:
        """`rows` count with all that is below them, `own` without."""
        aligned, steps = self._aligned, self._steps
        total = aligned.below[:, rows].sum(axis=1)
        if own:
            total = total + aligned.bytes[:, own]
        parts, devices = self._parts(rows, own, int(total[-1] - total[0]))
        return Growing(
            groups=self._last,
            kind=kind,
            path=(
                *aligned.group_path(path[item]),
                *(int(aligned.last_groups[row]) for row in path[item + 1 :]),
            ),
            holder=holder,
            item=item,
            counts=tuple(zip(steps, counts, strict=True)),
            bytes=tuple(zip(steps, total.tolist(), strict=True)),
            parts=parts,
            devices=devices,
            blocks=self._blocks(rows, own),
            holders=int(aligned.counts[-1, path[holder]]) if holder < item else 1,
            limit=self._limit(path[holder]),
            addresses=new_addresses(aligned, [path[item]]),
            share=0.0,
        )

    # ── what it is ──

    def _kind(self, path: list[int]) -> str:
        root = self._last.root_of(int(self._aligned.last_groups[path[0]]))
        if root.kind in (LinkKind.GARBAGE, LinkKind.NATIVE):
            return CYCLE if root.kind == LinkKind.GARBAGE else NATIVE
        if self._is_framework()[path[-1]]:
            return GRAPH
        is_folded = bool(self._last.is_folded[self._aligned.last_groups[path[-1]]])
        is_item = self._aligned.roles[path[-1]] in ANONYMOUS
        return CHAIN if is_folded and not is_item else CONTAINER

    def _is_framework(self) -> Booleans:
        roles = self._aligned.roles
        found: Booleans = (roles >= _FIRST_FRAMEWORK_ROLE) & (roles < ROOT_ROLE)
        found &= roles != EdgeRole.GRAD  # `.grad` is an attribute that a program assigns
        return found

    def _holder(self, path: list[int], at: int) -> int:
        """The nearest step from here up that is the program's and not a graph's."""
        is_framework = self._is_framework()
        while at > 0 and is_framework[path[at]]:
            at -= 1
        return at

    def _further(self, row: int) -> Iterator[int]:
        """Rows further down, as long as the largest has a quarter of the growth: an example."""
        aligned = self._aligned
        while True:
            children = aligned.children(row)
            if not len(children):
                return
            child = int(children[np.argmax(self._grown[children])])
            if 4 * self._grown[child] < self._grown[row] or aligned.last_groups[child] < 0:
                return
            yield child
            row = child

    # ── how much it is ──

    def _counts(self, rows: list[int], container: int) -> list[int]:
        """How many items, snapshot by snapshot: entries of a container, else members."""
        aligned = self._aligned
        if container and (np.diff(aligned.lengths[:, container]) > 0).all():
            lengths: list[int] = aligned.lengths[:, container].tolist()
            return lengths
        if aligned.roles[rows[0]] == EdgeRole.NEXT:
            # Of a graph, the node of which the fewest came: one for each time it got longer.
            rows = [
                min(rows, key=lambda row: int(aligned.counts[-1, row] - aligned.counts[0, row]))
            ]
        items = [row for row in rows if aligned.roles[row] != EdgeRole.KEY] or rows
        counts: list[int] = aligned.counts[:, items].sum(axis=1).tolist()
        return counts

    def _is_below(self, rows: list[int], own: int = 0) -> Booleans:
        every = np.arange(len(self._aligned.parents))
        found: Booleans = (every == own) if own else np.zeros(len(every), np.bool_)
        for row in rows:
            found |= self._aligned.is_below(every, row)
        return found

    def _parts(
        self, rows: list[int], own: int, total: int
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Bytes grown by part, and those in the memory of devices."""
        parts: dict[str, int] = {}
        devices: dict[str, int] = {}
        is_mine = self._is_below(rows, own)
        for at, sign in ((0, -1), (-1, 1)):
            groups = self._aligned.snapshots[at]
            mine = is_mine[self._aligned.rows[at][groups.payload_groups]]
            kinds, sizes = groups.payload_kinds[mine], groups.payload_bytes[mine]
            for kind, size in zip(kinds.tolist(), sizes.tolist(), strict=True):
                part, device = groups.payload_names[kind]
                parts[part] = parts.get(part, 0) + sign * size
                if device:
                    devices[device] = devices.get(device, 0) + sign * size
        parts["python"] = parts.get("python", 0) + total - sum(parts.values())
        return {k: v for k, v in parts.items() if v}, {k: v for k, v in devices.items() if v}

    def _blocks(self, rows: list[int], own: int) -> Blocks:
        is_mine = self._is_below(rows, own)
        found = Blocks()
        for at, sign in ((0, -1), (-1, 1)):
            groups = self._aligned.snapshots[at]
            mine = is_mine[self._aligned.rows[at]]
            number, size = groups.block_counts[mine].sum(), groups.block_bytes[mine].sum()
            found = found.plus(Blocks(float(number), float(size)), sign)
        return found

    def _limit(self, holder: int) -> int | None:
        """The sum of the limits of the holders, if each has one."""
        members, limits = self._last.members, self._last.meta.limits
        if not limits:
            return None
        group = int(self._aligned.last_groups[holder])
        addresses = members.addresses[(members.groups == group) & ~members.is_part]
        found = [limits.get(address) for address in addresses.tolist()]
        known = [one for one in found if one is not None]
        return sum(known) if known and len(known) == len(found) else None
