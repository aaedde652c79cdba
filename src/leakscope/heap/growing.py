"""The nouns of growth: one thing that grows, and all growth between snapshots."""

from __future__ import annotations

from dataclasses import dataclass

from leakscope.heap.groups import Groups
from leakscope.model import Blocks


@dataclass(frozen=True, slots=True)
class Growing:
    """Something that has more members, or larger ones, in each snapshot."""

    groups: Groups
    """Of the last snapshot; `path` is of its groups."""
    kind: str
    """container, graph, chain, array (one thing that gets larger), cycle (garbage that waits for
    the collector), or native (nothing in Python holds it)."""
    path: tuple[int, ...]
    """Groups from a root to the holder, the item, and on to where most of the bytes are."""
    holder: int
    """Index in `path` of what holds the items, and does not grow in number."""
    item: int
    """Index in `path` of the items; the same as `holder` where that itself gets larger."""
    counts: tuple[tuple[int, int], ...]
    """(step, how many items), snapshot by snapshot."""
    bytes: tuple[tuple[int, int], ...]
    """(step, bytes of the items and all that is below them, with the holder's own table)."""
    parts: dict[str, int]
    """Bytes grown: python, arrays, tensors, saved, nodes, shared memory."""
    devices: dict[str, int]
    """Of these, in the memory of devices."""
    blocks: Blocks
    """Of the bytes grown, those in small blocks of Python's own allocator."""
    holders: int
    """How many things of the holder's description there are; `counts` is their sum."""
    limit: int | None
    """The most items that the holders can have together, if they say so."""
    addresses: tuple[int, ...]
    """Some of the items of the last snapshot, the newest where that can be told."""
    share: float
    """Of all growth that the snapshots show."""

    @property
    def bytes_grown(self) -> int:
        return self.bytes[-1][1] - self.bytes[0][1]

    @property
    def items_grown(self) -> int:
        return self.counts[-1][1] - self.counts[0][1]

    @property
    def bytes_per_item(self) -> float:
        """What one more item keeps; 0 where one thing gets larger."""
        more = self.items_grown
        return self.bytes_grown / more if more > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Growth:
    """All that grew from the first snapshot to the last."""

    growing: list[Growing]
    """The largest first."""
    visible: tuple[tuple[int, int], ...]
    """(step, bytes of everything that the snapshot shows)."""
    rest_bytes: int
    """Growth that is none of these: in flight, made once, or small. Negative if it fell."""
