"""Facts of the machine a run happened on. Read from files; starts no other program."""

from __future__ import annotations

import os
import platform
import socket
from importlib import metadata

from leakscope.model import Machine
from leakscope.observe.limits import find_cgroup, read_meminfo, smallest_limit
from leakscope.record.format import storable

_PACKAGES = (
    "torch",
    "numpy",
    "lightning",
    "transformers",
    "accelerate",
    "torchmetrics",
    "tensorflow",
    "tensorflow-cpu",
    "keras",
    "jax",
    "jaxlib",
)
_ALLOCATOR_SETTINGS = (
    "MALLOC_",
    "GLIBC_TUNABLES",
    "LD_PRELOAD",
    "PYTHONMALLOC",
    "MIMALLOC_",
    "JE_MALLOC",
    "TCMALLOC",
    "PYTORCH_",
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY",
    "OMP_NUM_THREADS",
)


def describe_machine() -> Machine:
    limit = smallest_limit(find_cgroup())
    return Machine(
        host=socket.gethostname(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        cpu_count=len(os.sched_getaffinity(0)),
        ram_bytes=read_meminfo().get("ram_bytes"),
        libc=" ".join(platform.libc_ver()) or None,
        allocator_settings={
            name: storable(value)
            for name, value in sorted(os.environ.items())
            if name.startswith(_ALLOCATOR_SETTINGS)
        },
        limit_bytes=limit.bytes if limit else None,
        limit_from=limit.source if limit else None,
        packages=_installed(),
    )


def _installed() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
