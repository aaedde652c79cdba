"""The driver's numbers, from a driver that is none."""

from __future__ import annotations

import ctypes
from typing import Any

from leakscope.observe.devices.nvml import Nvml, open_nvml

GIB = 1 << 30


class FakeDriver:
    """The functions of libnvidia-ml that are called, for so many devices."""

    def __init__(self, devices: int = 1, *, init: int = 0, processes: int = 0) -> None:
        self.devices = devices
        self.init = init
        self.processes = processes

    def nvmlInit_v2(self) -> int:  # noqa: N802 - as the library has it
        return self.init

    def nvmlShutdown(self) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        count._obj.value = self.devices
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:  # noqa: N802
        handle._obj.value = index + 1
        return 0

    def nvmlDeviceGetUUID(self, handle: Any, text: Any, _: int) -> int:  # noqa: N802
        text.value = f"GPU-{handle.value}".encode()
        return 0

    def nvmlDeviceGetName(self, handle: Any, text: Any, _: int) -> int:  # noqa: N802
        text.value = b"a GPU"
        return 0

    def nvmlDeviceGetMemoryInfo_v2(self, handle: Any, memory: Any) -> int:  # noqa: N802
        memory._obj.total, memory._obj.used = 8 * GIB, handle.value * GIB
        memory._obj.reserved = 1
        return 0

    def nvmlDeviceGetComputeRunningProcesses_v3(  # noqa: N802
        self, handle: Any, count: Any, found: Any
    ) -> int:
        found[0].pid, found[0].used = 100 + handle.value, GIB
        found[1].pid, found[1].used = 7, (1 << 64) - 1
        count._obj.value = 2
        return self.processes


def opened(driver: FakeDriver) -> Nvml | str:
    return open_nvml(lambda name: driver)


def missing(name: str) -> Any:
    raise OSError(f"{name}: cannot open shared object file")


def test_without_the_library_the_reason_is_told() -> None:
    found = open_nvml(missing)
    assert isinstance(found, str)
    assert "no NVIDIA driver" in found


def test_a_driver_that_is_not_loaded_says_so() -> None:
    assert opened(FakeDriver(init=9)) == "the driver is not loaded (NVML)"
    assert opened(FakeDriver(init=42)) == "NVML: error 42"


def test_a_driver_without_a_device_says_so() -> None:
    assert opened(FakeDriver(0)) == "the driver is there, and no device"


def test_every_device_is_read_with_its_processes() -> None:
    nvml = opened(FakeDriver(2))
    assert isinstance(nvml, Nvml)
    first, second = nvml.read()
    assert (first.uuid, first.total_bytes, first.used_bytes) == ("GPU-1", 8 * GIB, GIB)
    assert second.by_process == {102: GIB, 7: None}, "what the driver does not tell is no number"


def test_processes_that_may_not_be_asked_for_are_a_gap() -> None:
    nvml = opened(FakeDriver(processes=4))
    assert isinstance(nvml, Nvml)
    (use,) = nvml.read()
    assert use.by_process == {}
    assert nvml.gaps == {
        "processes on a GPU": "the user may not ask the driver (NVML: no permission)"
    }


def test_the_structs_have_the_sizes_that_the_driver_expects() -> None:
    from leakscope.observe.devices.nvml import _Memory, _Process

    assert ctypes.sizeof(_Memory) == 40
    assert ctypes.sizeof(_Process) == 24
