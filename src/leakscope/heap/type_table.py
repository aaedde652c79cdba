"""The types of a snapshot: names, modules, and what each is for a reader of paths."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

_HEAD = struct.Struct("<QQQI")
_LENGTH = struct.Struct("<I")


class HeapType(NamedTuple):
    """One type, as the snapshot has it."""

    address: int
    qualified_name: str
    module: str
    mro: tuple[int, ...] = ()
    """Addresses, the type itself first."""
    flags: int = 0
    """`tp_flags`."""
    detail: str = ""
    """Of a function or generator: what its code is called."""

    @property
    def name(self) -> str:
        return self.qualified_name.rpartition(".")[2]

    @property
    def full_name(self) -> str:
        return f"{self.module}.{self.qualified_name}"


def read_types(payloads: Sequence[memoryview]) -> list[HeapType]:
    """The records of the "types" chunks."""
    data = b"".join(payloads)
    found = []
    at = 0
    while at + _HEAD.size <= len(data):
        address, flags, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        qualified_name = data[at : at + length].decode("utf-8", "replace")
        at += length
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        module = data[at : at + length].decode("utf-8", "replace")
        at += length
        (count,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        mro = struct.unpack_from(f"<{count}Q", data, at)
        at += 8 * count
        found.append(HeapType(address, qualified_name, module, mro, flags))
    return found
