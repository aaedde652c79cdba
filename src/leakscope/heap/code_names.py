"""Which code a function, generator, frame or bound method runs."""

from __future__ import annotations

import numpy as np

from leakscope.heap.arrays import Booleans, Numbers, Words
from leakscope.heap.code_table import CodeName
from leakscope.heap.snapshot import HeapSnapshot
from leakscope.record.snapshot_file import EdgeRole


class CodeNames:
    """The code of nodes that have some, as far as the recorder wrote its name."""

    def __init__(self, snapshot: HeapSnapshot) -> None:
        self._table = snapshot.codes
        known = snapshot.codes.nodes(snapshot.table)
        roles = snapshot.roles()
        code_of = np.full(snapshot.count + 1, -1, np.int32)
        is_known = np.zeros(snapshot.count + 1, np.bool_)
        is_known[known] = True
        for role in (EdgeRole.CODE, EdgeRole.FUNCTION) if len(known) else ():
            edges = np.flatnonzero(roles == role)
            sources = np.searchsorted(snapshot.starts, edges, side="right") - 1
            targets = snapshot.targets[edges]
            codes = targets if role is EdgeRole.CODE else code_of[targets]
            has_name = is_known[codes]
            code_of[sources[has_name]] = codes[has_name]
        self._nodes: Numbers = np.flatnonzero(code_of >= 0)
        self._codes: Words = snapshot.addresses[code_of[self._nodes]]

    def of_node(self, node: int) -> CodeName | None:
        """Where the code of a node is written."""
        at = int(np.searchsorted(self._nodes, node))
        if at == len(self._nodes) or self._nodes[at] != node:
            return None
        return self._table.find(int(self._codes[at]))

    def names_of(self, is_wanted: Booleans) -> dict[int, str]:
        """The qualified name for each of the nodes that are wanted and have code."""
        mine = np.flatnonzero(is_wanted[self._nodes])
        names = self._table.names(np.unique(self._codes[mine]))
        nodes, codes = self._nodes[mine].tolist(), self._codes[mine].tolist()
        return {node: names[code] for node, code in zip(nodes, codes, strict=True)}
