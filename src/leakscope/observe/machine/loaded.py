"""A process id in, what that process has loaded out: seen from outside, through /proc.

The allocator, the BLAS and OpenMP libraries and the driver's libraries by their paths, the packages
whose native code is mapped, and the settings the process was started with. Nothing is asked of the
process itself, which must not pay for it.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from leakscope.model import Loaded, Moment
from leakscope.observe.machine.installed import build_of, packages_in
from leakscope.observe.machine.settings import memory_settings
from leakscope.record.format import storable

_LIBRARIES = re.compile(
    r"lib(?P<name>jemalloc|tcmalloc|mimalloc|tbbmalloc|hoard|snmalloc|ld-musl|c|gomp|iomp5|omp|"
    r"openblas|openblas64_|scipy_openblas|scipy_openblas64_|mkl_rt|mkl_core|blis|dnnl|onednn|cuda|"
    r"cudart|cudnn|nccl|amdhip64|rocblas|python3)(?:[_-][\w.-]*)?(?:\.so|\.\d)[\w.]*"
)
"""Libraries that give out memory, keep pools or start threads."""

_SITE = re.compile(r"(?P<root>/.*/(?:site|dist)-packages)/(?P<top>[^/]+)/")
_BUNDLED = ".libs"
"""Folder of the libraries a wheel brings along: `numpy.libs`."""


_FIRST_S = 0.3
_LATER = 1.0
_LONGEST_S = 120.0
"""A process is asked 0.3 s after it was first seen and after as long again, and so on: libraries
are loaded at the start. Reading the map of a process with torch takes 1 to 3 ms of the
supervisor's."""


class Mapped(NamedTuple):
    """What the memory map of a process shows, and the settings it was started with."""

    libraries: dict[str, str]
    roots: tuple[str, ...]
    """Folders of installed packages that have native code in the map."""
    modules: tuple[str, ...]
    """Folders in them that do."""
    settings: dict[str, str]


class Loading:
    """Follows what one process has loaded; asked rarely, answers only when something is new."""

    def __init__(self) -> None:
        self.mapped: Mapped | None = None
        self.due_s = _FIRST_S
        """The age at which to ask again."""

    def read_if_due(self, pid: int, age_s: float, crowding: float = 1.0) -> bool:
        """True if there is something to write down. In a crowd, each is asked so much less."""
        if age_s < self.due_s:
            return False
        self.due_s = age_s + min(_LATER * crowding * age_s, _LONGEST_S)
        try:
            mapped = read_mapped(pid)
        except OSError:
            return False  # it has ended, or is another user's
        is_new = mapped != self.mapped
        self.mapped = mapped
        return is_new


def read_mapped(pid: int) -> Mapped:
    """What is loaded now. OSError if the process is gone or somebody else's."""
    paths = mapped_files(pid)
    sites = [site for path in paths if (site := _SITE.match(path))]
    return Mapped(
        libraries_in(paths),
        tuple(dict.fromkeys(site["root"] for site in sites)),
        tuple(sorted({site["top"].removesuffix(_BUNDLED) for site in sites})),
        memory_settings(_environment(pid)),
    )


def record_of(mapped: Mapped, process: str, at: Moment, *, has_packages: bool = False) -> Loaded:
    """As it is written down; packages and their builds are read from disk, some 40 ms the first
    time, so they come when the program is over."""
    packages = packages_in(mapped.roots, mapped.modules) if has_packages else {}
    return Loaded(
        at,
        process,
        mapped.libraries,
        {name: storable(one.version) for name, one in sorted(packages.items())},
        {name: storable(build_of(one)) for name, one in sorted(packages.items())},
        mapped.settings,
    )


def mapped_files(pid: int | None = None) -> list[str]:
    """Paths of all files in the memory of a process, each once."""
    found: dict[str, None] = {}
    with open(f"/proc/{pid or 'self'}/maps", "rb") as maps:
        for line in maps:
            fields = line.split(None, 5)
            if len(fields) == 6 and fields[5].startswith(b"/"):
                found[os.fsdecode(fields[5].strip())] = None
    return list(found)


def libraries_in(paths: list[str]) -> dict[str, str]:
    """`{"gomp": "/…/torch/lib/libgomp.so.1"}`; two of one kind are both told."""
    found: dict[str, str] = {}
    for path in sorted(paths):
        match = _LIBRARIES.match(os.path.basename(path))
        if match is not None:
            name, number = match["name"], 2
            while name in found and found[name] != storable(path):
                name, number = f"{match['name']} ({number})", number + 1
            found[name] = storable(path)
    return found


def _environment(pid: int) -> dict[str, str]:
    """As the process was started with; what it changed since is its own."""
    with open(f"/proc/{pid}/environ", "rb") as file:
        pairs = (entry.partition(b"=") for entry in file.read().split(b"\0") if entry)
        return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
