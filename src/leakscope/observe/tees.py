"""Of the ends of one `itertools.tee`: which is behind, and so holds what the others have passed.

Every end refers to the block of items it is in, and each block to the next. Two ends in the same
block refer to the same items; all that tells them apart is how far in it they are, which Python
does not show (pickling does, and warns from 3.12 on). It is a number behind the reference to the
block, as is checked before it is believed.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
from collections.abc import Iterator
from typing import Any

END: type = itertools._tee  # type: ignore[attr-defined]
_BLOCK: type = itertools._tee_dataobject  # type: ignore[attr-defined]
_MOST_BLOCKS = 20_000
"""Of 57 items each."""


def is_end(obj: object) -> bool:
    return type(obj) is END


def length_of(end: Any) -> int:
    """How many items it has still to pass on: they are kept for it."""
    block, length = _block_of(end), 0
    if block is None:
        return 0
    passed = _index_in(end, block)
    while block is not None:
        length += len(_items_of(block))
        block = _block_of(block)
    return max(length - passed, 0)


def newest(end: Any, most: int) -> Iterator[Any]:
    """Some of those, the last first."""
    blocks = [_block_of(end)]
    while blocks[-1] is not None:
        blocks.append(_block_of(blocks[-1]))
    backwards = (item for block in blocks[-2::-1] for item in reversed(_items_of(block)))
    return itertools.islice(backwards, most)


def last_of(end: Any) -> list[Any]:
    """The end that is furthest behind this one, and the blocks from its own to this one's; [] if
    none is."""
    block = _block_of(end)
    if block is None:
        return []
    furthest: list[Any] = []
    behind = (1, -_index_in(end, block))
    for other in gc.get_objects():
        if type(other) is END and other is not end:
            blocks = _blocks_up_to(block, other)
            if blocks and (distance := (len(blocks), -_index_in(other, blocks[0]))) > behind:
                furthest, behind = [other, *blocks], distance
    return furthest


def _block_of(end: Any) -> Any:
    return next((part for part in gc.get_referents(end) if type(part) is _BLOCK), None)


def _items_of(block: Any) -> list[Any]:
    """A block refers to its type (from 3.12 on), to the iterator, to its items, and to the next
    block if there is one."""
    parts = gc.get_referents(block)
    first = 2 if parts and parts[0] is _BLOCK else 1
    last = len(parts) - 1 if parts and type(parts[-1]) is _BLOCK else len(parts)
    return parts[first:last]


def _blocks_up_to(last: Any, end: Any) -> list[Any]:
    """The blocks from the one this end is in to the one given; [] if it is of another tee, or
    ahead."""
    blocks: list[Any] = []
    block = _block_of(end)
    while block is not None and len(blocks) < _MOST_BLOCKS:
        blocks.append(block)
        if block is last:
            return blocks
        block = _block_of(block)
    return []


def _index_in(end: Any, block: Any) -> int:
    """How many items of its block this end has passed; 0 where that cannot be read."""
    at = id(end) + object.__basicsize__
    if ctypes.c_void_p.from_address(at).value != id(block):
        return 0
    return ctypes.c_int.from_address(at + ctypes.sizeof(ctypes.c_void_p)).value
