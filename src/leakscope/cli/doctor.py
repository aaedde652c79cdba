"""Say what can be observed here, and why not the rest."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterator

from leakscope import text
from leakscope.observe.counters.native_heap import open_native_heap
from leakscope.observe.devices.nvml import open_nvml
from leakscope.observe.machine.limits import find_cgroup, read_meminfo, smallest_limit

_FRAMEWORKS = ("torch", "tensorflow", "jax")


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.description = __doc__


def run(options: argparse.Namespace) -> int:
    for is_seen, what, why in observe():
        print(f"  {'yes' if is_seen else 'no ':3}  {what:34} {why}")
    return 0


def observe() -> Iterator[tuple[bool, str, str]]:
    """What can be seen, with its source; what cannot, with the reason."""
    yield True, "Python", f"{sys.version.split()[0]} at {sys.executable}"
    heap = open_native_heap()
    yield (
        heap.read is not None,
        "bytes in use (exact)",
        f"{heap.allocator}'s own counters" if heap.read else f"{heap.allocator}: {heap.why_not}",
    )
    yield True, "Python memory blocks (exact)", "sys.getallocatedblocks"
    yield _file("process tree and resident memory", "/proc/self/statm")
    yield _file("children of a process", f"/proc/self/task/{os.getpid()}/children")
    yield _file("private, shared and swapped bytes", "/proc/self/smaps_rollup")
    cgroup = find_cgroup()
    limit = smallest_limit(cgroup)
    yield (
        cgroup is not None,
        "cgroup use and limit",
        f"version {cgroup.version} at {cgroup.directory}" if cgroup else "no memory controller",
    )
    yield (
        limit is not None,
        "what memory runs out at",
        f"{text.size(limit.bytes)} ({limit.source})" if limit else "neither cgroup nor RAM read",
    )
    swap = read_meminfo().get("swap_total_bytes", 0)
    yield bool(swap), "swap", text.size(swap) if swap else "none on this machine"
    for name in _FRAMEWORKS:
        found = importlib.util.find_spec(name) is not None
        if name == "torch":
            steps = "steps: optimizer, outermost module call, data loader, workers"
            yield found, name, steps if found else "not installed in this Python"
        elif found:
            yield False, f"{name} steps", "not counted yet: the clock is used, or leakscope.step()"
    yield True, "lines and holders", "looked for inside the program when its memory rises"
    native = importlib.util.find_spec("memray") is not None
    yield native, "lines of native memory", "memray" if native else "memray is not installed"
    yield _driver()


def _driver() -> tuple[bool, str, str]:
    """Device memory as the driver counts it; what a program has in use is asked inside of it."""
    found = open_nvml()
    if isinstance(found, str):
        return False, "GPU memory", found
    named = ", ".join(f"{one.name} ({text.size(one.total_bytes)})" for one in found.read())
    found.close()
    return True, "GPU memory", f"{named}; in use, reserved and by whom, once torch uses it"


def _file(what: str, path: str) -> tuple[bool, str, str]:
    try:
        with open(path, "rb") as file:
            file.read(1)
    except OSError as error:
        return False, what, f"{path}: {error.strerror}"
    return True, what, path
