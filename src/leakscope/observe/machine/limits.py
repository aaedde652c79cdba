"""How much memory there is: cgroup version 1 and 2, and the machine itself."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple

_NO_LIMIT = 1 << 60
"""Version 1 writes "no limit" as the largest page-rounded number."""


class MemoryLimit(NamedTuple):
    bytes: int
    source: str


class Cgroup:
    """The memory controller a process is under, whichever version it is."""

    def __init__(self, version: int, directory: str) -> None:
        self.version = version
        self.directory = directory
        self._directory_that_limits = self._limiting()[1]

    def limit_bytes(self) -> int | None:
        """The smallest limit on the way up to the root."""
        return self._limiting()[0]

    def _limiting(self) -> tuple[int | None, str]:
        """That limit, and the group that has it: whose use counts against it."""
        name = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
        smallest, where = None, self.directory
        directory = self.directory
        while True:
            value = _read_int(os.path.join(directory, name))
            if value is not None and value < (_NO_LIMIT if smallest is None else smallest):
                smallest, where = value, directory
            parent = os.path.dirname(directory)
            if parent == directory or not os.path.exists(os.path.join(parent, "cgroup.procs")):
                return smallest, where
            directory = parent

    def used_bytes(self) -> int | None:
        """Use now, page cache included, against the limit that counts."""
        name = "memory.current" if self.version == 2 else "memory.usage_in_bytes"
        return _read_int(os.path.join(self._directory_that_limits, name))

    def read(self) -> dict[str, int]:
        """Use now, and how often the kernel killed for memory."""
        values: dict[str, int] = {}
        directory = self._directory_that_limits
        use = self.used_bytes()
        if use is not None:
            values["cgroup_use_bytes"] = use
        events = "memory.events" if self.version == 2 else "memory.oom_control"
        kills = _read_fields(os.path.join(directory, events), (b"oom_kill",))
        if kills:
            values["oom_kills_count"] = kills[b"oom_kill"]
        # Of the groups below too, as is the use. Read once: the kernel adds it up at every reading.
        names = (b"file", b"shmem") if self.version == 2 else (b"total_cache", b"total_shmem")
        stat = _read_fields(os.path.join(directory, "memory.stat"), names)
        if (cache := stat.get(names[0])) is not None:
            # Both count /dev/shm as files; the kernel cannot give that back.
            values["page_cache_bytes"] = max(cache - stat.get(names[1], 0), 0)
        return values


def find_cgroup(
    pid: int | None = None, root: str = "/sys/fs/cgroup", proc: str = "/proc"
) -> Cgroup | None:
    """The memory cgroup of a process, or None where there is none to be seen.

    A machine can have both versions mounted; the one that carries the memory controller counts.
    """
    try:
        with open(f"{proc}/{pid or 'self'}/cgroup", "rb") as file:
            split = (os.fsdecode(line).rstrip("\n").split(":", 2) for line in file)
            lines = [fields for fields in split if len(fields) == 3]
    except OSError:
        return None
    for _, controllers, path in lines:
        if "memory" in controllers.split(","):
            return _existing(1, os.path.join(root, "memory"), path, "memory.limit_in_bytes")
    for _, controllers, path in lines:
        if controllers == "":
            return _existing(2, root, path, "memory.current")
    return None


def _existing(version: int, root: str, path: str, wanted: str) -> Cgroup | None:
    # Inside a container the path is that of the host; the container's own is the root then.
    for directory in (os.path.join(root, path.lstrip("/")), root):
        if os.path.exists(os.path.join(directory, wanted)):
            return Cgroup(version, directory.rstrip("/"))
    return None


def read_meminfo() -> dict[str, int]:
    """RAM, what is available, swap, and kernel memory that no process owns."""
    wanted = {
        "MemTotal": "ram_bytes",
        "MemAvailable": "available_bytes",
        "SwapTotal": "swap_total_bytes",
        "SwapFree": "swap_free_bytes",
        "SUnreclaim": "kernel_unreclaimable_bytes",
        "Shmem": "shared_memory_bytes",
    }
    values = {}
    with open("/proc/meminfo", encoding="utf-8") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if name in wanted:
                values[wanted[name]] = int(rest.split()[0]) * 1024
    return values


def smallest_limit(cgroup: Cgroup | None) -> MemoryLimit | None:
    """What the program will run into first."""
    limits = []
    if cgroup is not None and (limit := cgroup.limit_bytes()) is not None:
        limits.append(MemoryLimit(limit, f"cgroup v{cgroup.version} limit"))
    with suppress(OSError, KeyError):
        limits.append(MemoryLimit(read_meminfo()["ram_bytes"], "RAM of this machine"))
    return min(limits, default=None)


def _read_int(path: str) -> int | None:
    try:
        with open(path, "rb") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None  # "max" is no number, and no limit


def _read_fields(path: str, names: tuple[bytes, ...]) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    with suppress(OSError, ValueError), open(path, "rb") as file:
        for line in file:
            key, _, value = line.partition(b" ")
            if key in names:
                found[key] = int(value)
                if len(found) == len(names):
                    break
    return found
