"""How many of Python's small blocks objects take, and how many bytes are in them.

`sys.getallocatedblocks()` counts blocks of up to 512 bytes, and malloc's counters have the rest:
with both known of what a group keeps, its growth can be compared with either counter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leakscope.heap.arrays import Numbers
from leakscope.heap.snapshot import HeapSnapshot
from leakscope.model import LARGEST_BLOCK_BYTES

_BODIES = {"builtins.list": 56, "builtins.dict": 64, "builtins.set": 216}
"""Bytes of a container without its table, which is a block of its own."""


class NodeBlocks(NamedTuple):
    """Of each node."""

    counts: Numbers
    bytes: Numbers


def blocks_of(snapshot: HeapSnapshot) -> NodeBlocks:
    """The small blocks that each node is made of."""
    own = snapshot.bytes.copy()
    np.subtract.at(own, snapshot.payload.nodes, snapshot.payload.bytes)
    own[snapshot.object_count :] = 0
    bodies = np.array([_BODIES.get(kind.full_name, 0) for kind in snapshot.type_table], np.int64)
    body = bodies[snapshot.types]
    has_table = (body > 0) & (own > body)
    first = np.where(has_table, body, own)
    second = own - first
    total = np.zeros_like(own)
    counts = np.zeros_like(own)
    for piece in (first, second):
        is_small = (piece > 0) & (piece <= LARGEST_BLOCK_BYTES)
        counts += is_small
        total += np.where(is_small, piece, 0)
    return NodeBlocks(counts, total)
