"""The code of functions, as the walker wrote it: a name, a file and a line for each code object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from leakscope.heap.arrays import AddressTable, Indices, Words
from leakscope.heap.name_table import read_names

_LINE, _NAME, _FILE = 1, 2, 3


class CodeName(NamedTuple):
    """Where a function is written."""

    qualified_name: str
    file: str
    line: int

    @property
    def name(self) -> str:
        return self.qualified_name.rpartition(".")[2]


class CodeTable:
    """Code objects by address. There are as many as functions, and few are asked for."""

    def __init__(
        self,
        rows: Words,
        texts: Sequence[memoryview],
        known: Mapping[int, tuple[str, str, int]],
    ) -> None:
        """`rows` has four words each: address, first line, pointers to the name and the file.
        `known` are those that the recorder has read itself."""
        self._rows = rows.reshape(-1, 4)
        self._payloads = [bytes(text) for text in texts]
        self._texts: dict[int, str] | None = None
        self._known = known
        addresses = [*self._rows[:, 0].tolist(), *known]
        self._addresses: Words = np.array(addresses, np.uint64)

    def nodes(self, table: AddressTable) -> Indices:
        """The nodes of the code objects, without those that the snapshot does not have."""
        found = table.find(self._addresses)
        return found[found >= 0]

    def find(self, address: int) -> CodeName | None:
        """Where the code at an address is written."""
        known = self._known.get(address)
        if known is not None:
            return CodeName(*known)
        at = np.flatnonzero(self._rows[:, 0] == np.uint64(address))
        return self._name(self._rows[at[0]].tolist()) if len(at) else None

    def names(self, addresses: Words) -> dict[int, str]:
        """The qualified names of the code at some addresses."""
        found = {
            int(row[0]): self._text(int(row[_NAME]))
            for row in self._rows[np.isin(self._rows[:, 0], addresses)]
        }
        wanted = set(addresses.tolist())
        found.update((at, code[0]) for at, code in self._known.items() if at in wanted)
        return found

    def _name(self, row: list[int]) -> CodeName:
        return CodeName(self._text(row[_NAME]), self._text(row[_FILE]), row[_LINE])

    def _text(self, pointer: int) -> str:
        if self._texts is None:
            self._texts = read_names([memoryview(payload) for payload in self._payloads])
        return self._texts.get(pointer, "")
