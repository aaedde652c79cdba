"""The names of a snapshot: the same text under two pointers is one name."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from leakscope.heap.arrays import AddressTable, Numbers, Words

_HEAD = struct.Struct("<QI")


class NameTable:
    """Texts by number. Number 0 is no name."""

    def __init__(self, texts: dict[int, str]) -> None:
        self.texts: list[str] = [""]
        self._numbers: dict[str, int] = {"": 0}
        numbers = [self.number(text) for text in texts.values()]
        self._of_pointer = np.array([*numbers, 0], np.int64)
        self._pointers = AddressTable(np.array(list(texts), np.uint64))

    def number(self, text: str) -> int:
        """The number of a text, which is added if it is new."""
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number

    def find(self, pointers: Words) -> Numbers:
        """The number of the name at each pointer; 0 where there is none."""
        numbers: Numbers = self._of_pointer[self._pointers.find(pointers)]
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
