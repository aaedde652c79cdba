"""Notices, from outside, a process whose children become more and more."""

from __future__ import annotations

import os
import time
from collections import Counter

from leakscope.observe.processes.proc_files import Found, command_of
from leakscope.record.format import storable

_FEWEST = 8
_RECORDS = 6
_SPREAD_S = 1.0
"""More than ever, so many times and over so long: the workers of a pool start within less."""
_LARGEST = 1 << 20


class Crowds:
    """How many children each process has had at most, and when that last became more."""

    def __init__(self) -> None:
        self._most: dict[str, tuple[int, int, float]] = {}
        self._told: set[str] = set()

    def meet(self, tree: list[Found]) -> list[Found]:
        """Parents whose children seem to pile up, each of them once."""
        counts = Counter(found.parent_pid for found in tree)
        found = []
        for parent in tree:
            count = counts.get(parent.pid, 0)
            most, records, first_s = self._most.get(parent.process, (0, 0, time.monotonic()))
            if count <= most or parent.process in self._told:
                continue
            records += 1
            self._most[parent.process] = (count, records, first_s)
            is_spread = time.monotonic() - first_s >= _SPREAD_S
            if count >= _FEWEST and records >= _RECORDS and is_spread:
                self._told.add(parent.process)
                found.append(parent)
        return found


def script_of(pid: int) -> tuple[str, str] | None:
    """Path and text of the script that a Python runs."""
    words = command_of(pid)
    script = next((word for word in words[1:3] if word.endswith(".py")), None)
    if script is None:
        return None
    try:
        path = os.path.join(os.readlink(f"/proc/{pid}/cwd"), script)
        if os.path.getsize(path) > _LARGEST:
            return None
        with open(path, encoding="utf-8", errors="replace") as file:
            return storable(path), file.read()
    except OSError:
        return None
