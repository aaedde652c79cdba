"""Names of functions: which code a function, generator, frame or bound method runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leakscope.heap.arrays import Numbers, Words
from leakscope.heap.snapshot import HeapSnapshot
from leakscope.record.snapshot_file import EdgeRole


class CodeName(NamedTuple):
    """Where a function is written."""

    qualified_name: str
    file: str
    line: int

    @property
    def name(self) -> str:
        return self.qualified_name.rpartition(".")[2]


class CodeNames:
    """The code of nodes that have some, as far as the recorder wrote its name."""

    def __init__(self, snapshot: HeapSnapshot) -> None:
        self._by_address = snapshot.meta.code
        self.nodes: Numbers = np.empty(0, np.int64)
        self._codes: Words = np.empty(0, np.uint64)
        if not self._by_address:
            return
        roles = snapshot.roles()
        code_of = np.full(snapshot.count, -1, np.int64)
        is_known = np.zeros(snapshot.count + 1, np.bool_)
        is_known[snapshot.find(list(self._by_address))] = True
        is_known[-1] = False
        for role in (EdgeRole.CODE, EdgeRole.FUNCTION):
            edges = np.flatnonzero(roles == role)
            sources = np.searchsorted(snapshot.starts, edges, side="right") - 1
            targets = snapshot.targets[edges]
            codes = targets if role is EdgeRole.CODE else code_of[targets]
            has_name = is_known[codes]
            code_of[sources[has_name]] = codes[has_name]
        self.nodes = np.flatnonzero(code_of >= 0)
        self._codes = snapshot.addresses[code_of[self.nodes]]

    def of_node(self, node: int) -> CodeName | None:
        """Where the code of a node is written."""
        at = int(np.searchsorted(self.nodes, node))
        if at == len(self.nodes) or self.nodes[at] != node:
            return None
        return CodeName(*self._by_address[int(self._codes[at])])

    def texts(self) -> list[str]:
        """The qualified name for each of `nodes`."""
        return [self._by_address[address][0] for address in self._codes.tolist()]
