"""A machine in, everything known about it as named words out, so that two can be laid side by side.

One thing has one name however it was set: `GLIBC_TUNABLES=glibc.malloc.arena_max=1` is
`setting MALLOC_ARENA_MAX`. What differs without meaning is left out, such as the folder of a
virtual environment in the path of a library.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from leakscope import text
from leakscope.model import Machine

_TUNABLES = "GLIBC_TUNABLES"
_SAME = {
    "glibc.malloc.arena_max": "MALLOC_ARENA_MAX",
    "glibc.malloc.trim_threshold": "MALLOC_TRIM_THRESHOLD_",
    "glibc.malloc.mmap_threshold": "MALLOC_MMAP_THRESHOLD_",
    "glibc.malloc.mmap_max": "MALLOC_MMAP_MAX_",
    "glibc.malloc.top_pad": "MALLOC_TOP_PAD_",
}
_NOT_COMPARED = ("fact cpu.cores_count", "fact limit.processes_count")
"""The first is the number of cores again; the second follows from the RAM."""


def facts_of(machine: Machine) -> dict[str, str]:
    """`{"setting MALLOC_ARENA_MAX": "1", "package torch": "2.13.0", …}`, settings first."""
    return {name: value for name, value in _facts(machine) if name not in _NOT_COMPARED}


def _facts(machine: Machine) -> Iterator[tuple[str, str]]:
    for name, value in machine.allocator_settings.items():
        if name == _TUNABLES:
            for part in value.split(":"):
                tunable, _, word = part.partition("=")
                if tunable:
                    yield f"setting {_SAME.get(tunable, tunable)}", word
        else:
            yield f"setting {name}", value
    if machine.allocator is not None:
        yield "allocator", machine.allocator
    if machine.libc is not None:
        yield "libc", machine.libc
    yield "cores", str(machine.cpu_count)
    yield "python", machine.python
    if machine.ram_bytes is not None:
        yield "ram", text.size(machine.ram_bytes)
    if machine.limit_bytes is not None and machine.limit_bytes != machine.ram_bytes:
        yield "limit", f"{text.size(machine.limit_bytes)} ({machine.limit_from})"
    if machine.accelerators:
        yield "accelerators", ", ".join(machine.accelerators)
    if "system.kernel" not in machine.facts:
        yield "system", machine.system
    for name, value in machine.facts.items():
        yield f"fact {name}", value
    for name, value in machine.packages.items():
        yield f"package {name}", value
    for name, value in machine.builds.items():
        yield f"build {name}", value
    for name, value in machine.libraries.items():
        yield f"library {name}", _without_folder(value)


def _without_folder(path: str) -> str:
    """`torch/lib/libgomp.so.1` of an installed package; the whole path of anything else."""
    inside = re.search(r"/(?:site|dist)-packages/(.+)", path)
    if inside is not None:
        return inside.group(1)
    return os.path.basename(path) if "/lib" in path and "libpython" in path else path
