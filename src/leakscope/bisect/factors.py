"""The run as it is in, the factors that can be changed from outside out; and those that cannot."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator, Mapping

from leakscope.inject import COLLECT, START_METHOD
from leakscope.model import Cause, LeftOut, Machine
from leakscope.model.noun import Noun
from leakscope.summarise.machine import START_METHOD as SEEN_START_METHOD

_THRESHOLD = str(128 * 1024)
"""What glibc starts with. Setting it stops it from moving."""

_GLIBC = {
    "arenas": ("one arena for all threads", "MALLOC_ARENA_MAX", "1"),
    "mmap-threshold": ("large blocks mapped", "MALLOC_MMAP_THRESHOLD_", _THRESHOLD),
    "trim-threshold": ("free memory given back", "MALLOC_TRIM_THRESHOLD_", _THRESHOLD),
    "thread-cache": ("no cache in threads", "GLIBC_TUNABLES", "glibc.malloc.tcache_count=0"),
}
_OTHERS = 4
"""Threads, the cache of oneDNN, the collector, the start method."""

_PRELOADS = ("jemalloc", "tcmalloc_minimal", "tcmalloc", "mimalloc")
_FOLDERS = (
    *("/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib", "/lib/*-linux-gnu"),
    *(os.path.join(sys.prefix, "lib"), "/opt/conda/lib"),
)
_THREADED = ("gomp", "iomp5", "omp", "openblas", "scipy_openblas", "mkl_", "blis")
EXPERIMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "experiment")
"""A folder with a sitecustomize that sets what no variable of Python's can."""


class Factor(Noun, frozen=True):
    id: str
    group: Cause
    """What the growth depends on if changing this removes it."""
    title: str
    environment: dict[str, str]

    @property
    def setting(self) -> str:
        """What was set, as it could be typed; how leakscope sets the rest is not to be typed."""
        shown = [f"{name}={value}" for name, value in self.environment.items() if name in _TYPED]
        return " ".join(shown) or self.title


_TYPED = frozenset(
    (
        *("MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "LD_PRELOAD"),
        *("GLIBC_TUNABLES", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
        *("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY", "TF_ENABLE_ONEDNN_OPTS"),
    )
)


def factors_for(
    machine: Machine, environment: Mapping[str, str], *, live_grows: bool
) -> tuple[tuple[Factor, ...], tuple[LeftOut, ...]]:
    """What can be tried on this program, the most telling first, and what cannot."""
    found: list[Factor] = []
    left_out: list[LeftOut] = []
    for one in (
        *_glibc(machine, environment),
        *_preloads(machine, environment),
        *_threads(machine, environment),
        *_caches(machine, environment),
        Factor("collect", Cause.COLLECTOR, "collecting at every row", {COLLECT: "1"}),
        *_workers(machine, environment),
    ):
        if isinstance(one, Factor):
            found.append(one)
        else:
            left_out.append(one)
    # Of memory in use no allocator is the reason: the others are asked first.
    found.sort(key=lambda one: (one.group is Cause.ALLOCATOR) == live_grows)
    return tuple(found), tuple(left_out)


def most_runs() -> int:
    """Before anything is known of the program: it twice, every factor once, the best once more."""
    preloads = {name.partition("_")[0] for name in _PRELOADS if find_library(name) is not None}
    return len(_GLIBC) + len(preloads) + _OTHERS + 3


def _glibc(machine: Machine, environment: Mapping[str, str]) -> Iterator[Factor | LeftOut]:
    if "glibc" not in (machine.allocator or machine.libc or ""):
        yield LeftOut("settings of glibc", f"the program's malloc is {machine.allocator}")
        return
    for name, (title, variable, value) in _GLIBC.items():
        change = {variable: value}
        if variable == "GLIBC_TUNABLES":
            change = {variable: _tunables(environment, value)}
        if all(environment.get(key) == value for key, value in change.items()):
            yield LeftOut(name, "it is set so already")
        else:
            yield Factor(name, Cause.ALLOCATOR, title, change)


def _tunables(environment: Mapping[str, str], new: str) -> str:
    old = environment.get("GLIBC_TUNABLES", "")
    name = new.partition("=")[0]
    kept = [part for part in old.split(":") if part and not part.startswith(name)]
    return ":".join([*kept, new])


def _preloads(machine: Machine, environment: Mapping[str, str]) -> Iterator[Factor | LeftOut]:
    loaded = machine.allocator or ""
    old = environment.get("LD_PRELOAD", "")
    seen = set()
    for name in _PRELOADS:
        short = name.partition("_")[0]
        path = find_library(name)
        if path is None or short in seen:
            continue
        seen.add(short)
        if short in loaded:
            yield Factor("no-preload", Cause.ALLOCATOR, f"without {short}", {"LD_PRELOAD": ""})
        else:
            preload = os.pathsep.join(filter(None, (path, old)))
            yield Factor(short, Cause.ALLOCATOR, f"{short} as malloc", {"LD_PRELOAD": preload})
    for short in ("jemalloc", "tcmalloc", "mimalloc"):
        if short not in seen:
            yield LeftOut(short, "not found on this machine")


def find_library(name: str) -> str | None:
    """The newest `lib<name>.so` in the usual folders."""
    for folder in _FOLDERS:
        found = [
            path
            for path in glob.glob(os.path.join(folder, f"lib{name}.so*"))
            if os.path.isfile(path)
        ]
        if found:
            return max(found)
    return None


def _threads(machine: Machine, environment: Mapping[str, str]) -> Iterator[Factor | LeftOut]:
    if not any(name.startswith(_THREADED) for name in machine.libraries):
        yield LeftOut("one-thread", "no OpenMP or BLAS library was loaded")
    elif environment.get("OMP_NUM_THREADS") == "1":
        yield LeftOut("one-thread", "OMP_NUM_THREADS is 1 already")
    else:
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        title = "one OpenMP and BLAS thread"
        yield Factor("one-thread", Cause.THREADS, title, dict.fromkeys(names, "1"))


def _caches(machine: Machine, environment: Mapping[str, str]) -> Iterator[Factor | LeftOut]:
    is_torch = "torch" in machine.packages and any("gomp" in n for n in machine.libraries)
    tensorflow = {"tensorflow", "tensorflow-cpu"} & set(machine.packages)
    if is_torch or tensorflow:
        capacity = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "0", "LRU_CACHE_CAPACITY": "1"}
        if environment.get("ONEDNN_PRIMITIVE_CACHE_CAPACITY") == "0":
            yield LeftOut("onednn-cache", "it is off already")
        else:
            yield Factor("onednn-cache", Cause.CACHE, "oneDNN caches nothing", capacity)
    else:
        yield LeftOut("onednn-cache", "neither PyTorch nor TensorFlow is used")
    if tensorflow:
        off = {"TF_ENABLE_ONEDNN_OPTS": "0"}
        yield Factor("tensorflow-onednn", Cause.CACHE, "TensorFlow without oneDNN", off)


def _workers(machine: Machine, environment: Mapping[str, str]) -> Iterator[Factor | LeftOut]:
    seen = machine.facts.get(SEEN_START_METHOD, "")
    if not seen:
        yield LeftOut("start-method", "the program starts no Python workers")
        return
    other = "fork" if seen in ("spawn", "forkserver") else "spawn"
    path = os.pathsep.join(filter(None, (EXPERIMENT, environment.get("PYTHONPATH", ""))))
    change = {START_METHOD: other, "PYTHONPATH": path}
    yield Factor(f"start-{other}", Cause.WORKERS, f"workers started by {other}", change)
    yield LeftOut(
        "number of workers",
        "it is the program's own argument and cannot be changed from outside; change it there and "
        "use leakscope compare",
    )
