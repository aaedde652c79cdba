"""What the kernel and the system say about memory, as named words. Read from files only.

A fact that cannot be read is absent. Names are dotted, the unit last, as everywhere.
"""

from __future__ import annotations

import os
import platform
import re
import resource
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import suppress

from leakscope.observe.machine.limits import find_cgroup, read_meminfo

_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage"
_VIRTUAL_MEMORY = ("overcommit_memory", "overcommit_ratio", "swappiness", "max_map_count")
_LIMITS = {
    "RLIMIT_AS": "limit.address_space_bytes",
    "RLIMIT_DATA": "limit.data_bytes",
    "RLIMIT_MEMLOCK": "limit.locked_bytes",
    "RLIMIT_NOFILE": "limit.open_files_count",
    "RLIMIT_NPROC": "limit.processes_count",
    "RLIMIT_STACK": "limit.stack_bytes",
}
_INSTRUCTIONS = ("avx2", "avx512f", "avx512_bf16", "amx_tile")
_DRIVER = re.compile(r"Kernel Module\s+(?:for \S+\s+)?(\d+(?:\.\d+)+)")


def kernel_facts() -> dict[str, str]:
    """Everything that could be read, sorted by name."""
    facts: dict[str, str] = {}
    for source in _SOURCES:
        with suppress(OSError, ValueError, KeyError):
            facts.update(source())
    return dict(sorted(facts.items()))


def accelerators() -> tuple[str, ...]:
    """Models of the graphics cards, as the driver's own files name them."""
    found = []
    root = "/proc/driver/nvidia/gpus"
    with suppress(OSError):
        for card in sorted(os.listdir(root)):
            model = re.search(r"Model:\s*(.+)", _read(f"{root}/{card}/information"))
            found.append(model.group(1).strip() if model else card)
    return tuple(found)


def _huge_pages() -> Iterator[tuple[str, str]]:
    for name in ("enabled", "defrag", "shmem_enabled"):
        with suppress(OSError):
            chosen = re.search(r"\[(\w+)\]", _read(f"{_HUGE_PAGES}/{name}"))
            if chosen:
                yield f"huge_pages.{name}", chosen.group(1)


def _virtual_memory() -> Iterator[tuple[str, str]]:
    for name in _VIRTUAL_MEMORY:
        with suppress(OSError):
            yield f"vm.{name}", _read(f"/proc/sys/vm/{name}")
    with suppress(OSError):
        yield "vm.zswap", _read("/sys/module/zswap/parameters/enabled")
    with suppress(OSError):
        yield "vm.same_page_merging", _read("/sys/kernel/mm/ksm/run")


def _memory() -> Iterator[tuple[str, str]]:
    values = read_meminfo()
    if "swap_total_bytes" in values:
        yield "swap.total_bytes", str(values["swap_total_bytes"])
    shared = os.statvfs("/dev/shm")
    yield "shared_memory.size_bytes", str(shared.f_blocks * shared.f_frsize)


def _limits() -> Iterator[tuple[str, str]]:
    for name, told in _LIMITS.items():
        soft, _ = resource.getrlimit(getattr(resource, name))
        yield told, "unlimited" if soft == resource.RLIM_INFINITY else str(soft)


def _cgroup() -> Iterator[tuple[str, str]]:
    group = find_cgroup()
    if group is None:
        return
    yield "cgroup.version", str(group.version)
    if group.version == 2:
        for name in ("memory.high", "memory.swap.max", "cpu.max"):
            with suppress(OSError):
                yield f"cgroup.{name.replace('.', '_')}", _read(f"{group.directory}/{name}")
    else:
        quota = _read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
        yield "cgroup.cpu_max", f"{quota} {_read('/sys/fs/cgroup/cpu/cpu.cfs_period_us')}"


def _processor() -> Iterator[tuple[str, str]]:
    if (cores := os.cpu_count()) is not None:
        yield "cpu.cores_count", str(cores)
    content = _read("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.+)", content)
    if model:
        yield "cpu.model", model.group(1).strip()
    flags = re.search(r"(?:flags|Features)\s*:\s*(.+)", content)
    if flags:
        known = set(flags.group(1).split())
        yield "cpu.instructions", " ".join(one for one in _INSTRUCTIONS if one in known) or "none"


def _system() -> Iterator[tuple[str, str]]:
    yield "system.kernel", platform.release()
    yield "system.distribution", platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")


def _container() -> Iterator[tuple[str, str]]:
    kind = "none seen"
    if os.path.exists("/.dockerenv"):
        kind = "docker"
    elif os.path.exists("/run/.containerenv"):
        kind = "podman"
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        kind = "kubernetes"
    yield "system.container", kind
    if "SLURM_JOB_ID" in os.environ:
        yield "system.scheduler", "slurm"


def _python() -> Iterator[tuple[str, str]]:
    yield "python.implementation", sys.implementation.name
    yield "python.build", " ".join(platform.python_build()[:1]) or "unknown"
    yield "python.compiler", platform.python_compiler()
    without_lock = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    yield "python.free_threaded", "yes" if without_lock else "no"
    yield "python.pymalloc", "yes" if sysconfig.get_config_var("WITH_PYMALLOC") else "no"
    # Python 3.14 starts workers by forkserver where 3.13 forked them.
    method = "forkserver" if sys.version_info >= (3, 14) else "fork"
    yield "python.default_start_method", method


def _drivers() -> Iterator[tuple[str, str]]:
    with suppress(OSError):
        version = _DRIVER.search(_read("/proc/driver/nvidia/version"))
        if version:
            yield "driver.nvidia", version.group(1)
    with suppress(OSError):
        yield "driver.amdgpu", _read("/sys/module/amdgpu/version")
    with suppress(OSError):
        yield "driver.rocm", _read("/opt/rocm/.info/version")


_SOURCES: tuple[Callable[[], Iterator[tuple[str, str]]], ...] = (
    _huge_pages,
    _virtual_memory,
    _memory,
    _limits,
    _cgroup,
    _processor,
    _system,
    _container,
    _python,
    _drivers,
)


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().strip()
