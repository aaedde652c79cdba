"""Device memory as the driver counts it: NVML through ctypes, from beside the program.

No dependency, and no context on the device: `nvidia-smi` asks the same way. A device is known by
its UUID, because the numbers inside a program follow CUDA_VISIBLE_DEVICES.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

_LIBRARY = "libnvidia-ml.so.1"
_MOST_PROCESSES = 256
_UNKNOWN_BYTES = (1 << 64) - 1
_NAME_BYTES = 96
_OK = 0
_REASONS = {
    3: "the driver does not offer it here (NVML: not supported)",
    4: "the user may not ask the driver (NVML: no permission)",
    6: "the driver has no such device (NVML: not found)",
    9: "the driver is not loaded (NVML)",
    18: "the library and the driver are of different versions (NVML); a restart mends that",
    999: "NVML does not say why",
}


class _Memory(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint),
        ("total", ctypes.c_ulonglong),
        ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


_MEMORY_VERSION = ctypes.sizeof(_Memory) | (2 << 24)


class DeviceUse(NamedTuple):
    """One device at one moment."""

    uuid: str
    name: str
    total_bytes: int
    reserved_bytes: int
    """By the driver itself, for nobody."""
    used_bytes: int
    """By all processes together."""
    by_process: dict[int, int | None]
    """Bytes of each process that computes on it; None where the driver does not tell."""


class Nvml:
    """The driver's library, once it has been found."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._devices: list[tuple[ctypes.c_void_p, str, str]] = []
        self.gaps: dict[str, str] = {}

    def find_devices(self) -> None:
        count = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        for index in range(count.value):
            handle = ctypes.c_void_p()
            self._call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle))
            uuid = self._text("nvmlDeviceGetUUID", handle)
            self._devices.append((handle, uuid, self._text("nvmlDeviceGetName", handle)))

    def read(self) -> list[DeviceUse]:
        """Every device; what could not be read of it is in `gaps`."""
        found = []
        for handle, uuid, name in self._devices:
            memory = _Memory(version=_MEMORY_VERSION)
            try:
                self._call("nvmlDeviceGetMemoryInfo_v2", handle, ctypes.byref(memory))
            except OSError as error:
                self.gaps[f"memory of {name}"] = str(error)
                continue
            processes: dict[int, int | None] = {}
            try:
                processes = self._processes(handle)
            except OSError as error:
                self.gaps[f"processes on {name}"] = str(error)
            found.append(
                DeviceUse(uuid, name, memory.total, memory.reserved, memory.used, processes)
            )
        return found

    def close(self) -> None:
        self._library.nvmlShutdown()

    def _processes(self, handle: ctypes.c_void_p) -> dict[int, int | None]:
        count = ctypes.c_uint(_MOST_PROCESSES)
        processes = (_Process * _MOST_PROCESSES)()
        self._call(
            "nvmlDeviceGetComputeRunningProcesses_v3", handle, ctypes.byref(count), processes
        )
        return {
            one.pid: None if one.used == _UNKNOWN_BYTES else one.used
            for one in processes[: count.value]
        }

    def _text(self, function: str, handle: ctypes.c_void_p) -> str:
        buffer = ctypes.create_string_buffer(_NAME_BYTES)
        self._call(function, handle, buffer, _NAME_BYTES)
        return buffer.value.decode("utf-8", "replace")

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code != _OK:
            raise OSError(_REASONS.get(code, f"NVML: error {code}"))


def open_nvml(load: Callable[[str], Any] = ctypes.CDLL) -> Nvml | str:
    """The library, ready to be read; or why there is nothing to be read."""
    try:
        library = load(_LIBRARY)
    except OSError:
        return f"{_LIBRARY} is not there: no NVIDIA driver on this machine"
    nvml = Nvml(library)
    try:
        nvml._call("nvmlInit_v2")
        nvml.find_devices()
    except (OSError, AttributeError) as error:
        return str(error)
    if not nvml._devices:
        return "the driver is there, and no device"
    return nvml
