"""How much of the host's memory is used, as the limit counts it: 1 µs while it is far away."""

from __future__ import annotations

from typing import NamedTuple

from leakscope.observe.machine.limits import Cgroup, find_cgroup, read_meminfo, smallest_limit

_NEAR = 0.9
_ASK_RAM_EVERY = 8
"""/proc/meminfo is five times as dear as the file of a cgroup."""


class Use(NamedTuple):
    used_bytes: int
    limit_bytes: int


class HostUse:
    """Against the limit that is met first: a cgroup's, or the machine's RAM."""

    def __init__(self, cgroup: Cgroup | None = None) -> None:
        self._cgroup = cgroup
        self._limit_bytes = 0
        self._is_of_cgroup = False
        self._is_known = False
        self._asked = 0

    def read(self) -> Use | None:
        """None where there is no limit to be read, or it is not yet time to ask again."""
        if not self._is_known:
            self._find()
        if not self._limit_bytes:
            return None
        if self._is_of_cgroup and self._cgroup is not None:
            return self._read_cgroup(self._cgroup)
        self._asked += 1
        if self._asked % _ASK_RAM_EVERY:
            return None
        available = read_meminfo().get("available_bytes")
        if available is None:
            return None
        return Use(max(self._limit_bytes - available, 0), self._limit_bytes)

    def _find(self) -> None:
        self._is_known = True
        self._cgroup = self._cgroup or find_cgroup()
        limit = smallest_limit(self._cgroup)
        if limit is not None:
            self._limit_bytes = limit.bytes
            self._is_of_cgroup = "cgroup" in limit.source

    def _read_cgroup(self, cgroup: Cgroup) -> Use | None:
        used = cgroup.used_bytes()
        if used is None:
            return None
        if used >= _NEAR * self._limit_bytes:
            # The page cache is in it, and is given back before anything is killed.
            used -= cgroup.read().get("page_cache_bytes", 0)
        return Use(used, self._limit_bytes)
