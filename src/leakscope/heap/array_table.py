"""The NumPy arrays of a snapshot: what their data takes and how each is described."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from leakscope.heap.arrays import Numbers, Words
from leakscope.record.snapshot_file import DType

_HEAD_WORDS = 6
_DTYPE, _FLAGS, _NDIM = 3, 4, 5
_OWNS_DATA = 4
"""NumPy's flag: the array frees its data."""

_UNKNOWN = DType(0, 0, "")


class ArrayTable:
    """Arrays by number, in the order of the file."""

    def __init__(self, payloads: Sequence[memoryview], dtypes: Iterable[DType]) -> None:
        self._words: Words = np.frombuffer(b"".join(payloads), np.uint64)
        self._dtypes = {dtype.address: dtype for dtype in dtypes}
        words = self._words.data
        begins = []
        at, end = 0, len(words) - _HEAD_WORDS
        while at <= end:
            begins.append(at)
            at += _HEAD_WORDS + words[at + _NDIM]
        self._begins: Numbers = np.array(begins, np.int64)
        self.addresses: Words = self._words[self._begins]

    def data_bytes(self) -> Numbers:
        """What the data of each takes; 0 where another object owns it."""
        item_bytes = self._item_bytes()
        total = np.where(self._words[self._begins + _FLAGS] & np.uint64(_OWNS_DATA), item_bytes, 0)
        dimensions = self._words[self._begins + _NDIM].astype(np.int64)
        for axis in range(int(dimensions.max(initial=0))):
            has_axis = np.flatnonzero(dimensions > axis)
            lengths = self._words[self._begins[has_axis] + _HEAD_WORDS + axis]
            total[has_axis] *= lengths.astype(np.int64)
        return total

    def describe(self, number: int, type_name: str) -> str:
        """As `ndarray [64, 512] float32`."""
        begin = int(self._begins[number])
        first = begin + _HEAD_WORDS
        shape = [int(word) for word in self._words[first : first + int(self._words[begin + _NDIM])]]
        dtype = self._dtypes.get(int(self._words[begin + _DTYPE]), _UNKNOWN)
        return f"{type_name} {shape} {dtype.name}".rstrip()

    def _item_bytes(self) -> Numbers:
        addresses = self._words[self._begins + _DTYPE]
        known, inverse = np.unique(addresses, return_inverse=True)
        sizes = [self._dtypes.get(int(address), _UNKNOWN).item_bytes for address in known]
        found: Numbers = np.array(sizes, np.int64)[inverse]
        return found
