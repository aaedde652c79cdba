"""What malloc has given out, and what it holds free: exact counters kept by the allocator itself.

On the same training loops these counters have a step noise of 0.1 KB where RSS has 335 to
7,600 KB, which is why verdicts are built on them.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import NamedTuple

HeapReader = Callable[[], tuple[int, int]]
"""Returns (bytes in use, bytes held free)."""


class NativeHeap(NamedTuple):
    allocator: str
    read: HeapReader | None
    why_not: str | None = None


class _Mallinfo2(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    )


def open_native_heap() -> NativeHeap:
    """The allocator this process really uses, with a reader for its counters if it has any."""
    libraries = _mapped_libraries()
    # PyDLL keeps the interpreter lock: none of these calls can wait for Python, and
    # giving the lock away costs a thread switch at every step.
    process = ctypes.PyDLL(None)
    for name, open_reader in _PRELOADED:
        if any(name in library for library in libraries):
            return open_reader(process)
    if hasattr(process, "mallinfo2"):
        return _open_glibc(process)
    if any("musl" in library for library in libraries):
        return NativeHeap("musl", None, "musl's malloc keeps no counters")
    return NativeHeap("unknown", None, "this C library has no mallinfo2 (glibc 2.33 or newer has)")


def _open_glibc(process: ctypes.PyDLL) -> NativeHeap:
    mallinfo2 = process.mallinfo2
    mallinfo2.restype = _Mallinfo2
    mallinfo2.argtypes = ()

    def read() -> tuple[int, int]:
        info = mallinfo2()
        return info.uordblks + info.hblkhd, info.fordblks

    version = process.gnu_get_libc_version
    version.restype = ctypes.c_char_p
    return NativeHeap(f"glibc {version().decode()}", read)


def _open_jemalloc(process: ctypes.PyDLL) -> NativeHeap:
    mallctl = getattr(process, "mallctl", None)
    if mallctl is None:
        return NativeHeap("jemalloc", None, "this jemalloc exports no mallctl")
    value, width, epoch = ctypes.c_size_t(), ctypes.c_size_t(8), ctypes.c_uint64(1)
    value_at, width_at, epoch_at = map(ctypes.byref, (value, width, epoch))

    def statistic(name: bytes) -> int:
        width.value = 8
        if mallctl(name, value_at, width_at, None, ctypes.c_size_t(0)):
            raise OSError(f"mallctl {name.decode()} failed")
        return value.value

    def read() -> tuple[int, int]:
        # jemalloc's statistics are a snapshot; writing the epoch takes a new one.
        mallctl(b"epoch", None, None, epoch_at, ctypes.c_size_t(8))
        in_use = statistic(b"stats.allocated")
        return in_use, max(0, statistic(b"stats.resident") - in_use)

    try:
        read()
    except OSError as error:
        return NativeHeap("jemalloc", None, f"built without statistics ({error})")
    return NativeHeap("jemalloc", read)


def _open_tcmalloc(process: ctypes.PyDLL) -> NativeHeap:
    get = getattr(process, "MallocExtension_GetNumericProperty", None)
    if get is None:
        return NativeHeap("tcmalloc", None, "this tcmalloc exports no MallocExtension")
    value = ctypes.c_size_t()
    value_at = ctypes.byref(value)

    def property_of(name: bytes) -> int:
        get(name, value_at)
        return value.value

    def read() -> tuple[int, int]:
        in_use = property_of(b"generic.current_allocated_bytes")
        held = property_of(b"generic.heap_size") - property_of(b"tcmalloc.pageheap_unmapped_bytes")
        return in_use, max(0, held - in_use)

    return NativeHeap("tcmalloc", read)


def _open_mimalloc(process: ctypes.PyDLL) -> NativeHeap:
    return NativeHeap("mimalloc", None, "mimalloc tells its counters only as printed text")


_PRELOADED: tuple[tuple[str, Callable[[ctypes.PyDLL], NativeHeap]], ...] = (
    ("jemalloc", _open_jemalloc),
    ("tcmalloc", _open_tcmalloc),
    ("mimalloc", _open_mimalloc),
)


def _mapped_libraries() -> set[str]:
    with open("/proc/self/maps", "rb") as maps:
        paths = {line.split(None, 5)[5].strip() for line in maps if line.count(b"/")}
    return {os.path.basename(os.fsdecode(path)) for path in paths}
