"""A torch with CUDA that is none, for machines without a GPU: what `CudaDoor` calls, and no more.

The shapes of its answers are those of torch 2.11 on an H200 (bench/results)."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

MIB = 1 << 20


def counted(current: int) -> dict[str, Any]:
    return {"all": {"current": current, "peak": current}}


class FakeCuda:
    """Memory by device number; `calls` has every question that would touch a device."""

    def __init__(self, *allocated: int) -> None:
        self.allocated = list(allocated)
        self.reserved = [2 * size for size in allocated]
        self.is_initialised = True
        self.is_history_on = False
        self.segments: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.on_oom: Callable[..., None] | None = None
        self.total = 1000 * MIB

    def stats(self, index: int) -> dict[str, Any]:
        if not self.is_initialised:
            raise RuntimeError("Invalid device argument")
        self.calls.append(f"stats {index}")
        return {
            "allocated_bytes": counted(self.allocated[index]),
            "reserved_bytes": counted(self.reserved[index]),
            "inactive_split_bytes": counted(0),
            "segment": counted(1),
            "num_alloc_retries": 0,
            "num_ooms": 0,
        }

    def record(self, enabled: str | None, **_: Any) -> None:
        self.is_history_on = enabled is not None

    def attach(self, call: Callable[..., None]) -> None:
        self.on_oom = call

    def as_torch(self) -> Any:
        c = SimpleNamespace(
            _cuda_memoryStats=self.stats,
            _cuda_getDeviceCount=lambda: len(self.allocated),
            _cuda_memorySnapshot=lambda _: {"segments": self.segments},
            _cuda_isHistoryEnabled=lambda: self.is_history_on,
            _cuda_attach_out_of_memory_observer=self.attach,
            _cuda_getMemoryFraction=lambda _: 1.0,
        )
        info = SimpleNamespace(
            cudaMemGetInfo=lambda index: (self.total - self.reserved[index], self.total)
        )
        cuda = SimpleNamespace(
            is_initialized=lambda: self.is_initialised,
            cudart=lambda: info,
            memory=SimpleNamespace(_record_memory_history=self.record),
            get_device_properties=lambda _: SimpleNamespace(uuid="12-34", name="a GPU"),
        )
        version = SimpleNamespace(cuda="13.0", hip=None)
        return SimpleNamespace(_C=c, cuda=cuda, version=version)


def segment(*blocks: tuple[int, int, str], pool: tuple[int, int] = (0, 0)) -> dict[str, Any]:
    """Of device 0; a block is an address, a size and the file that asked for it, if known."""
    return {
        "device": 0,
        "segment_pool_id": pool,
        "total_size": sum(size for _, size, _ in blocks),
        "blocks": [
            {
                "address": address,
                "size": size,
                "state": "active_allocated",
                "frames": [{"filename": file, "line": 7, "name": "serve"}] if file else [],
            }
            for address, size, file in blocks
        ],
    }
