"""The names of a snapshot: the same text under two pointers is one name."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from leakscope.heap.arrays import AddressTable, Numbers, Words

_HEAD = struct.Struct("<QI")
_UNALIGNED = np.uint64(15)


class NameTable:
    """Texts by number. Number 0 is no name."""

    def __init__(self, texts: dict[int, str]) -> None:
        self.texts: list[str] = list(dict.fromkeys(["", *texts.values()]))
        self._numbers = {text: number for number, text in enumerate(self.texts)}
        numbers = map(self._numbers.__getitem__, texts.values())
        pointers = np.array(list(texts), np.uint64)
        of_pointer = np.array(list(numbers), np.int64)
        # Names of members in C are anywhere, two of them in 16 bytes even; all others are objects.
        is_object = (pointers & _UNALIGNED) == 0
        self._objects = AddressTable(pointers[is_object])
        self._of_object = np.concatenate([of_pointer[is_object], [0]])
        order = np.argsort(pointers[~is_object])
        self._members: Words = pointers[~is_object][order]
        self._of_member: Numbers = of_pointer[~is_object][order]

    def number(self, text: str) -> int:
        """The number of a text, which is added if it is new."""
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number

    def find(self, pointers: Words) -> Numbers:
        """The number of the name at each pointer; 0 where there is none."""
        numbers: Numbers = self._of_object[self._objects.find(pointers)]
        unaligned = np.flatnonzero(pointers & _UNALIGNED)
        if len(unaligned) and len(self._members):
            wanted = pointers[unaligned]
            at = np.minimum(np.searchsorted(self._members, wanted), len(self._members) - 1)
            numbers[unaligned] = np.where(self._members[at] == wanted, self._of_member[at], 0)
        return numbers


def read_names(payloads: Sequence[memoryview]) -> dict[int, str]:
    """The records of the "names" chunks: texts by pointer."""
    data = b"".join(payloads)
    names = {}
    unpack, size = _HEAD.unpack_from, _HEAD.size
    at, end = 0, len(data) - size
    while at <= end:
        pointer, length = unpack(data, at)
        at += size
        names[pointer] = data[at : at + length].decode("utf-8", "replace")
        at += length
    return names
