"""What is read at the ends of a line: levels in bytes, and the highest level there ever was.

Each gauge knows what one reading of it costs, for the ledger paces it by that.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import resource
import sys
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, NamedTuple

from leakscope.model import Gap
from leakscope.observe.counters.native_heap import HeapReader, open_native_heap

_TRIES_TO_TIME = 5
_STATISTICS_BYTES = 1 << 14
"""The table of pymalloc's size classes is 3 KiB long on 3.11 to 3.13."""


Reader = Callable[[], tuple[int, int]]
"""The level now, and the highest since the process began: 0 where the source does not keep it."""


class Gauge(NamedTuple):
    name: str
    """`heap`, `small`, `resident` or `device`."""
    read: Reader
    cost_ns: int


def open_gauges() -> tuple[list[Gauge], list[Gap]]:
    """What can be read here, dearest first, and what cannot."""
    gauges: list[Gauge] = []
    gaps: list[Gap] = []
    for name, what, opening in (
        ("small", "small Python objects", _open_small_objects),
        ("device", "device memory", _open_device),
        ("resident", "peak inside a line", _open_resident),
        ("heap", "C heap, in use", _open_heap),
    ):
        try:
            read = opening()
            read()
            cost = min(_timed(read) for _ in range(_TRIES_TO_TIME))
        except Exception as error:  # noqa: BLE001 - what cannot be read is a gap, never an error
            why = (
                str(error)
                if isinstance(error, _NotHereError)
                else f"{type(error).__name__}: {error}"
            )
            gaps.append(Gap(what=what, why=why))
        else:
            gauges.append(Gauge(name, read, cost))
    return gauges, gaps


class _NotHereError(Exception):
    """Says why a gauge cannot be read on this machine, in words for the table."""


def _timed(read: Callable[[], object]) -> int:
    began = perf_counter_ns()
    read()
    return perf_counter_ns() - began


def _open_heap() -> Reader:
    heap = open_native_heap()
    if heap.read is None:
        raise _NotHereError(heap.why_not or "this allocator keeps no counters")
    if heap.allocator.startswith("glibc") and platform.machine() == "x86_64":
        return _glibc_in_place()
    return _first_of(heap.read)


def _first_of(read: HeapReader) -> Reader:
    def level() -> tuple[int, int]:
        return read()[0], 0

    return level


def _glibc_in_place() -> Reader:
    """`mallinfo2` into a buffer of ours: 0.4 µs instead of 1.2. On x86-64 a struct is returned by
    writing it where the hidden first argument points."""
    mallinfo2 = ctypes.PyDLL(None).mallinfo2
    mallinfo2.restype = None
    mallinfo2.argtypes = (ctypes.c_void_p,)
    fields = (ctypes.c_size_t * 10)()
    at = ctypes.addressof(fields)

    def level() -> tuple[int, int]:
        mallinfo2(at)
        return fields[7] + fields[4], 0  # uordblks + hblkhd

    return level


def _open_small_objects() -> Reader:
    """Bytes of pymalloc's blocks in use, from the table it prints: objects up to 512 bytes, which
    malloc's counters do not have."""
    if sys.implementation.name != "cpython" or not hasattr(sys, "_debugmallocstats"):
        raise _NotHereError("this Python tells nothing about its small objects")
    if os.environ.get("PYTHONMALLOC", "pymalloc").startswith("malloc") or not _uses_pymalloc():
        raise _NotHereError("Python takes its objects from malloc here: they are in the C heap")
    statistics = getattr(ctypes.pythonapi, "_PyObject_DebugMallocStats", None)
    if statistics is None:
        raise _NotHereError("this Python does not export pymalloc's statistics")
    libc = ctypes.PyDLL(None)
    libc.fmemopen.restype = ctypes.c_void_p
    libc.fmemopen.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    buffer = ctypes.create_string_buffer(_STATISTICS_BYTES)
    file = libc.fmemopen(ctypes.addressof(buffer), _STATISTICS_BYTES, b"w")
    if not file:
        raise _NotHereError("fmemopen failed")
    statistics.argtypes = rewind_args = (ctypes.c_void_p,)
    rewind, flush = libc.rewind, libc.fflush
    rewind.argtypes = flush.argtypes = rewind_args
    row = re.compile(rb"^ +\d+ +(\d+) +\d+ +(\d+) ", re.MULTILINE)

    def level() -> tuple[int, int]:
        rewind(file)
        statistics(file)
        flush(file)
        rows = row.findall(buffer.value)
        return sum(int(size) * int(blocks) for size, blocks in rows), 0

    if level()[0] <= 0:
        raise _NotHereError("pymalloc's statistics have a form that is not known")
    return level


def _uses_pymalloc() -> bool:
    return sys.getallocatedblocks() > 0


def _open_resident() -> Reader:
    page = resource.getpagesize()
    statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)

    def level() -> tuple[int, int]:
        highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return int(os.pread(statm, 64, 0).split(None, 2)[1]) * page, highest

    return level


def why_no_device() -> str | None:
    """Why nothing can be said about device memory at this moment; None if something can."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not hasattr(cuda, "is_initialized"):
        others = [name for name in ("tensorflow", "jax") if name in sys.modules]
        if others:
            return f"the device memory of {' and '.join(others)} is not read"
        return "nothing that uses a device is loaded"
    if not cuda.is_initialized():
        return "torch has not initialised CUDA in this process"
    return None


def _open_device() -> Reader:
    """Bytes that torch has allocated on all CUDA devices. Never initialises CUDA: until the program
    does, there are none."""
    statistics: Any = None
    devices = range(0)

    def level() -> tuple[int, int]:
        nonlocal statistics, devices
        if statistics is None:
            if why_no_device() is not None:
                return 0, 0
            torch = sys.modules["torch"]
            statistics, devices = torch._C._cuda_memoryStats, range(torch.cuda.device_count())
        now = highest = 0
        for device in devices:
            allocated = statistics(device)["allocated_bytes"]["all"]
            now += allocated["current"]
            highest += allocated["peak"]
        return now, highest

    return level
