"""A process tree from outside, through /proc: cheap numbers often, dear ones rarely."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from leakscope.record.format import parse_start_ticks, storable

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")

# Names in /proc/<pid>/smaps_rollup and what we call them.
_ROLLUP = {
    b"Rss": "rss_bytes",
    b"Pss": "pss_bytes",
    b"Shared_Clean": "shared_clean_bytes",
    b"Shared_Dirty": "shared_dirty_bytes",
    b"Private_Clean": "private_clean_bytes",
    b"Private_Dirty": "private_dirty_bytes",
    b"Pss_File": "file_bytes",
    b"Pss_Shmem": "shmem_bytes",
    b"Swap": "swap_bytes",
}


class Found(NamedTuple):
    """A process as the tree walk found it."""

    process: str
    pid: int
    parent_pid: int


class Watched:
    """One live process with its cached descriptor; `close()` when it is gone."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self._statm = os.open(f"/proc/{found.pid}/statm", os.O_RDONLY | os.O_CLOEXEC)

    def rss_bytes(self) -> int | None:
        """Resident bytes, or None once the process has ended."""
        try:
            content = os.pread(self._statm, 64, 0)
        except OSError:
            return None
        # A zombie still has the file, with zeros in it.
        pages = int(content.split(None, 2)[1]) if content else 0
        return pages * _PAGE if pages else None

    def read_slow(self) -> tuple[dict[str, int], dict[str, str]]:
        """Shared and private bytes, swap, faults, threads, open files: 6 to 21 ms a GiB."""
        values: dict[str, int] = {}
        gaps: dict[str, str] = {}
        for name, read in (
            ("smaps_rollup", self._read_rollup),
            ("stat", self._read_stat),
            ("fd", self._read_descriptors),
        ):
            try:
                values |= read()
            except OSError as error:
                gaps[name] = error.strerror or str(error)
        return values, gaps

    def close(self) -> None:
        os.close(self._statm)

    def _read_rollup(self) -> dict[str, int]:
        values = {}
        with open(f"/proc/{self.found.pid}/smaps_rollup", "rb") as rollup:
            for line in rollup:
                name, _, rest = line.partition(b":")
                if name in _ROLLUP:
                    values[_ROLLUP[name]] = int(rest.split()[0]) * 1024
        values["uss_bytes"] = values.pop("private_clean_bytes", 0) + values.pop(
            "private_dirty_bytes", 0
        )
        values["shared_bytes"] = values.pop("shared_clean_bytes", 0) + values.pop(
            "shared_dirty_bytes", 0
        )
        return values

    def _read_stat(self) -> dict[str, int]:
        with open(f"/proc/{self.found.pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
        return {
            "minor_faults_count": int(fields[7]),
            "major_faults_count": int(fields[9]),
            "threads_count": int(fields[17]),
        }

    def _read_descriptors(self) -> dict[str, int]:
        return {"descriptors_count": len(os.listdir(f"/proc/{self.found.pid}/fd"))}


def find_tree(root_pid: int, zombies: list[int] | None = None) -> list[Found]:
    """The root and everything below it that is alive, parents before children.

    `zombies` gets the numbers of those that are over and were not waited for."""
    tree: list[Found] = []
    waiting = [(root_pid, os.getpid())]
    while waiting:
        pid, parent_pid = waiting.pop(0)
        try:
            with open(f"/proc/{pid}/stat", "rb") as stat:
                content = stat.read()
            children = _children(pid)
        except (OSError, ValueError):
            continue  # ended between two looks
        if content.rpartition(b")")[2].split()[0] != b"Z":
            tree.append(Found(f"{pid}-{parse_start_ticks(content)}", pid, parent_pid))
        elif zombies is not None:
            zombies.append(pid)
        waiting += [(child, pid) for child in children]
    return tree


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                children += map(int, file.read().split())
        except FileNotFoundError:
            continue  # the thread ended
    return children


def age_of(process: str) -> int:
    """Nanoseconds since it was started, from the name that `find_tree` gave it."""
    ticks = int(process.rpartition("-")[2])
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - ticks * _TICK_NS


def command_of(pid: int) -> tuple[str, ...]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")[:-1]
            return tuple(storable(os.fsdecode(word)) for word in words)
    except OSError:
        return ()


def environment_of(pid: int, names: tuple[str, ...]) -> dict[str, str]:
    """The chosen variables as they were when the process was started."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = (entry.partition(b"=") for entry in file.read().split(b"\0"))
            found = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    except OSError:
        return {}
    return {name: storable(found[name]) for name in names if name in found}
