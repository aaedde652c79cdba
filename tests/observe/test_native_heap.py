"""The allocator's own counters: exact, cheap, and honest where there are none."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

from leakscope.observe.counters import native_heap
from leakscope.observe.counters.native_heap import open_native_heap

_MIB = 1 << 20


def test_counts_what_malloc_gave_out() -> None:
    """Breaks when the structure, the fields or the sum of mapped and arena bytes is wrong."""
    heap = open_native_heap()
    if heap.read is None:
        pytest.skip(f"{heap.allocator}: {heap.why_not}")
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = (ctypes.c_void_p,)
    for size in (64 * _MIB, 200 * 1024):  # one mapped, ones from the arena
        before, _ = heap.read()
        blocks = [libc.malloc(ctypes.c_size_t(size)) for _ in range(4)]
        during, _ = heap.read()
        for block in blocks:
            libc.free(block)
        after, _ = heap.read()
        assert 4 * size <= during - before <= 4 * size + _MIB
        assert abs(after - before) < _MIB


def test_this_machine_is_named() -> None:
    """Breaks when glibc is not recognised, or has no version in its name."""
    heap = open_native_heap()
    if heap.allocator.startswith("glibc"):
        assert heap.allocator.split()[1][0].isdigit()
        assert heap.why_not is None


class _Library:
    """Stands in for a preloaded allocator."""

    def __init__(self, **functions: Any) -> None:
        self.__dict__.update(functions)


def _preloaded(
    monkeypatch: pytest.MonkeyPatch, library: str, process: _Library
) -> native_heap.NativeHeap:
    monkeypatch.setattr(native_heap, "_mapped_libraries", lambda: {"libc.so.6", library})
    monkeypatch.setattr(ctypes, "PyDLL", lambda name: process)
    return open_native_heap()


def _jemalloc(numbers: dict[bytes, int]) -> _Library:
    epochs = []

    def mallctl(name: bytes, old: Any, width: Any, new: Any, new_width: Any) -> int:
        if name == b"epoch":
            epochs.append(1)
            return 0
        if name not in numbers:
            return 2
        old._obj.value = numbers[name] * len(epochs)  # stale without a new epoch
        return 0

    return _Library(mallctl=mallctl, mallinfo2=None)


def test_jemalloc_is_read_through_its_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when glibc's counters, which stand still then, are read under jemalloc."""
    process = _jemalloc({b"stats.allocated": 100, b"stats.resident": 130})
    heap = _preloaded(monkeypatch, "libjemalloc.so.2", process)
    assert heap.allocator == "jemalloc"
    assert heap.read is not None
    assert heap.read() == (200, 60)
    assert heap.read() == (300, 90)


@pytest.mark.parametrize(
    ("library", "process", "why"),
    [
        ("libjemalloc.so.2", _jemalloc({}), "built without statistics"),
        ("libjemalloc.so.2", _Library(), "exports no mallctl"),
        ("libtcmalloc_minimal.so.4", _Library(), "exports no MallocExtension"),
        ("libmimalloc.so.2", _Library(), "only as printed text"),
        ("ld-musl-x86_64.so.1", _Library(), "musl's malloc keeps no counters"),
        ("libc.so.6", _Library(), "has no mallinfo2"),
    ],
)
def test_allocator_without_counters_is_a_named_gap(
    library: str, process: _Library, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when an allocator that cannot be read is read as zero, or raises."""
    heap = _preloaded(monkeypatch, library, process)
    assert heap.read is None
    assert heap.why_not is not None
    assert why in heap.why_not


def test_tcmalloc_is_read_through_its_properties(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when memory given back to the system counts as held."""
    numbers = {
        b"generic.current_allocated_bytes": 70,
        b"generic.heap_size": 130,
        b"tcmalloc.pageheap_unmapped_bytes": 40,
    }

    def get(name: bytes, value: Any) -> int:
        value._obj.value = numbers[name]
        return 1

    process = _Library(MallocExtension_GetNumericProperty=get)
    heap = _preloaded(monkeypatch, "libtcmalloc.so.4", process)
    assert heap.read is not None
    assert heap.read() == (70, 20)


def test_mapped_libraries_are_file_names() -> None:
    """Breaks when paths with spaces or deleted files confuse the reading of /proc/self/maps."""
    names = native_heap._mapped_libraries()
    assert any(name.startswith("libc") for name in names)
    assert not any("/" in name for name in names)
    assert Path("/proc/self/maps").exists()
