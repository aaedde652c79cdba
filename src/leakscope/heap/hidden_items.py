"""Objects that native code holds, and the growing objects whose native part that is.

A `StringIO` keeps its text in a list that no `tp_traverse` visits: the lists seem to be held by
native code, and the `StringIO`s to be small. If as many of one came as of the other, from each
snapshot to the next, and the other is of a type written in C that refers to nothing else, then one
is the inside of the other.
"""

from __future__ import annotations

import numpy as np

from leakscope.heap.aligned import Aligned
from leakscope.heap.arrays import Booleans, Numbers
from leakscope.heap.see_through import ROOT_ROLE, Part
from leakscope.heap.unreached import NATIVE
from leakscope.record.snapshot_file import EdgeRole

_FEWEST = 10
"""Numbers below this are the same by chance too often."""

_SOURCE = ".py"


class HiddenItems:
    """Rows that native code holds, by the row that they seem to be the inside of."""

    def __init__(self, aligned: Aligned, told: list[int]) -> None:
        self._aligned = aligned
        self.inside: dict[int, list[int]] = {}
        """By the row of the outer objects."""
        natives = [row for row in told if self._is_native(row)]
        others = [row for row in told if row not in natives]
        if not natives or not others:
            return
        is_closed = self._is_closed(others)
        more = np.diff(aligned.counts, axis=0)
        for row in natives:
            is_same = is_closed & (more == more[:, [row]]).all(axis=0)
            if int(more[:, row].min()) >= _FEWEST and is_same.any():
                outers = np.flatnonzero(is_same)
                # A lock has no room for anything: the largest has.
                largest = int(outers[np.argmax(aligned.bytes[-1, outers])])
                self.inside.setdefault(largest, []).append(row)

    def rows(self) -> set[int]:
        """All rows that are the inside of others."""
        return {row for rows in self.inside.values() for row in rows}

    def outer_below(self, row: int) -> int:
        """A row below this one that has an inside; -1 if none has."""
        for outer in self.inside:
            if self._aligned.is_below(np.array([outer]), row)[0]:
                return outer
        return -1

    def _is_native(self, row: int) -> bool:
        if self._aligned.roles[row] != ROOT_ROLE:
            return False
        root = self._aligned.snapshots[-1].root_of(int(self._aligned.last_groups[row]))
        return root.via == NATIVE

    def _is_closed(self, told: list[int]) -> Booleans:
        """Rows below what grows that are of a type written in C and refer to nothing."""
        aligned = self._aligned
        last = aligned.snapshots[-1]
        files = {module.name: module.file for module in last.meta.modules}
        is_c = [
            kind.module in files and not files[kind.module].endswith(_SOURCE)
            for kind in last.kind_table
        ]
        is_kind = np.array(is_c, np.bool_) & ((last.parts & (Part.CONSTANT | Part.PLAIN)) == 0)
        found = np.zeros(len(aligned.parents), np.bool_)
        groups = aligned.last_groups
        found[groups > 0] = is_kind[last.kinds[groups[groups > 0]]]
        found[aligned.parents] = False
        found &= aligned.roles != EdgeRole.TYPE
        rows: Numbers = np.flatnonzero(found)
        is_below = np.zeros(len(rows), np.bool_)
        for row in told:
            is_below |= aligned.is_below(rows, row)
        found[rows[~is_below]] = False
        return found
