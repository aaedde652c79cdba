"""Memory of accelerators, as the allocator of the framework counts it: the one door to it.

`Door` is what leakscope needs of a kind of device. CUDA and ROCm are behind `CudaDoor`: PyTorch
calls both by one name. Another kind (MPS, XPU) is another class with the same few functions, and
may answer None where its allocator cannot tell. Nothing here initialises a device: as long as the
program has not, the door is shut.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

_BLOCK = 512
"""CUDA's allocator rounds up to this (torch/c10, kMinBlockSize)."""
_HISTORY_ENTRIES = 1
"""Of the trace of events, which is not wanted: stacks are kept with the blocks themselves."""
_IN_USE = "active_allocated"
_NO_POOL = (0, 0)
_NOT_LOADED = SimpleNamespace()

Stack = tuple[tuple[str, int, str], ...]
"""File, line and function, the innermost first."""


class Block(NamedTuple):
    """A piece of device memory that is in use."""

    device: str
    address: int
    bytes: int
    stack: Stack
    """Where it was asked for; empty if it was not recorded, or asked for by the backward pass."""
    is_in_graph_pool: bool
    """Memory of a CUDA graph: it stays as long as the graph."""


PoolId = tuple[int, ...]


class Pool(NamedTuple):
    """What CUDA graphs that share a pool have reserved; nobody else gets it while they live."""

    device: str
    bytes: int


class Snapshot(NamedTuple):
    """Everything an allocator has given out, at one moment."""

    blocks: list[Block]
    pools: dict[PoolId, Pool]

    def pool_bytes(self, device: str) -> int:
        return sum(pool.bytes for pool in self.pools.values() if pool.device == device)


class Door(Protocol):
    """One kind of device."""

    kind: str
    """As PyTorch says it: cuda, mps."""

    def is_open(self) -> bool:
        """Has the program itself begun to use the device?"""

    def why_shut(self) -> str | None:
        """Why there is nothing to see, where a device might be expected; else None."""

    def count(self) -> int: ...

    def read(self, index: int) -> tuple[int, int]:
        """Bytes allocated and reserved."""

    def describe(self, index: int) -> str:
        """The device as the driver names it, with its number."""

    def details(self, index: int) -> dict[str, int]:
        """What is asked now and then: sizes, limits, how often it ran short."""

    def snapshot(self) -> Snapshot | None:
        """Everything in use, or None where the allocator cannot tell."""

    def record_stacks(self, is_on: bool) -> bool:
        """Keep the stack of each allocation from here on; False where that cannot be switched."""

    def on_out_of_memory(self, call: Callable[..., None]) -> bool:
        """Be told of a failure before the program is; False where nobody tells."""


class CudaDoor:
    """CUDA, and ROCm, which PyTorch calls so too. Only for a torch that was built for one."""

    kind = "cuda"

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._cuda = torch.cuda
        self._c = torch._C
        self._stats = torch._C._cuda_memoryStats
        self._is_open = torch.cuda.is_initialized

    def is_open(self) -> bool:
        return bool(self._is_open())

    def why_shut(self) -> str | None:
        if self.is_open():
            return None
        if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
            return "CUDA_VISIBLE_DEVICES leaves the program no device"
        return "PyTorch is built for it, and the program has not initialised it"

    def count(self) -> int:
        return int(self._c._cuda_getDeviceCount())

    def read(self, index: int) -> tuple[int, int]:
        stats = self._stats(index)
        return (
            stats["allocated_bytes"]["all"]["current"],
            stats["reserved_bytes"]["all"]["current"],
        )

    def describe(self, index: int) -> str:
        properties = self._cuda.get_device_properties(index)
        return f"GPU-{properties.uuid} {properties.name}"

    def details(self, index: int) -> dict[str, int]:
        stats = self._stats(index)
        values = {
            "allocated_bytes": stats["allocated_bytes"]["all"]["current"],
            "reserved_bytes": stats["reserved_bytes"]["all"]["current"],
            "peak_allocated_bytes": stats["allocated_bytes"]["all"]["peak"],
            "peak_reserved_bytes": stats["reserved_bytes"]["all"]["peak"],
            "split_bytes": stats["inactive_split_bytes"]["all"]["current"],
            "segments_count": stats["segment"]["all"]["current"],
            "retries_count": stats["num_alloc_retries"],
            "ooms_count": stats["num_ooms"],
        }
        # For a device of which memory is reserved: asked of another, it would make a context.
        free, total = self._cuda.cudart().cudaMemGetInfo(index)
        values |= {"free_bytes": free, "total_bytes": total}
        if hasattr(self._c, "_cuda_getMemoryFraction"):
            values["allowed_bytes"] = int(self._c._cuda_getMemoryFraction(index) * total)
        if hasattr(self._c, "_cuda_hostMemoryStats"):
            host = self._c._cuda_hostMemoryStats()
            held = host["allocated_bytes"]["current"]
            # In torch 2.11 what is freed without having been copied from stays counted as active
            # (pytorch/pytorch#182404): 786 MiB of the 36 that were held, in a program that leaks
            # nothing, on an H200.
            values["pinned_bytes"] = min(host["active_bytes"]["current"], held)
            values["pinned_held_bytes"] = held
        return values

    def snapshot(self) -> Snapshot:
        """By the raw call, and without the 5 s of import that it would begin with: it looks for
        `torch._inductor` to name the frames of compiled code, and torch loads what it is asked for.
        As long as nothing was compiled there is nothing to find (torch 2.11, seen on an H200)."""
        namespace = vars(self._torch)
        is_lazy = "torch._inductor" not in sys.modules and "_inductor" not in namespace
        if is_lazy:
            namespace["_inductor"] = _NOT_LOADED
        try:
            segments = self._c._cuda_memorySnapshot(None)["segments"]
        finally:
            if is_lazy:
                namespace.pop("_inductor", None)
        return Snapshot(list(_blocks_in(segments)), _pools_in(segments))

    def record_stacks(self, is_on: bool) -> bool:
        record = self._cuda.memory._record_memory_history
        if is_on:
            if self._c._cuda_isHistoryEnabled():
                return False  # the program's own; it has the stacks already
            record("state", context="state", stacks="python", max_entries=_HISTORY_ENTRIES)
        else:
            record(None)
        return True

    def on_out_of_memory(self, call: Callable[..., None]) -> bool:
        self._c._cuda_attach_out_of_memory_observer(call)
        return True


def _pools_in(segments: Iterable[dict[str, Any]]) -> dict[PoolId, Pool]:
    pools: dict[PoolId, Pool] = {}
    for segment in segments:
        key = tuple(segment.get("segment_pool_id", _NO_POOL))
        if key != _NO_POOL:
            known = pools.get(key, Pool(f"{CudaDoor.kind}:{segment['device']}", 0))
            pools[key] = Pool(known.device, known.bytes + segment["total_size"])
    return pools


def _blocks_in(segments: Iterable[dict[str, Any]]) -> Iterable[Block]:
    stacks: dict[int, Stack] = {}
    for segment in segments:
        device = f"{CudaDoor.kind}:{segment['device']}"
        is_in_graph_pool = tuple(segment.get("segment_pool_id", _NO_POOL)) != _NO_POOL
        for block in segment["blocks"]:
            if block["state"] == _IN_USE:
                frames = block.get("frames") or ()
                # Blocks of one line share their list of frames: it is read once.
                stack = stacks.get(id(frames))
                if stack is None:
                    stack = stacks[id(frames)] = tuple(
                        (frame["filename"], frame["line"], frame["name"]) for frame in frames
                    )
                yield Block(device, block["address"], block["size"], stack, is_in_graph_pool)


def open_door(torch: Any) -> Door | None:
    """The door to the devices that this torch was built for; None if it was built for none."""
    version = getattr(torch, "version", None)
    if getattr(version, "cuda", None) or getattr(version, "hip", None):
        return CudaDoor(torch)
    return None


def rounded(size: int) -> int:
    """What the allocator takes for so many bytes, at least."""
    return -(-size // _BLOCK) * _BLOCK


def device_of(tensor: Any) -> str | None:
    """`cuda:0`, or None for the host's memory."""
    base = sys.modules["torch"]._C.TensorBase
    return None if base.is_cpu.__get__(tensor) else str(base.device.__get__(tensor))


def address_of(tensor: Any) -> int:
    """Where its storage begins; read without a write, which would part lazily cloned tensors."""
    c = sys.modules["torch"]._C
    offset = c.TensorBase.storage_offset(tensor) * c.TensorBase.element_size(tensor)
    return int(c._data_address(tensor)) - int(offset)
