"""Where work on many parts of a recording is done: here, or as tasks of a Ray cluster.

An engine is a `map`: a function and its arguments in, the answers in the same order out. What is
answered cannot depend on the engine, because the functions are the same.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Protocol, TypeVar

from leakscope import errors

Part = TypeVar("Part")
Answer = TypeVar("Answer")

NAMES = ("local", "ray")

_TASKS_PER_CORE = 4
"""Parts are sent in so many bundles per core: a task costs Ray about a millisecond, and bundles of
unequal weight still end at about the same time."""


_WORTH_A_POOL = 64
"""Fewer parts are done sooner than processes are started for them."""


class Engine(Protocol):
    def __call__(
        self, function: Callable[[Part], Answer], parts: Iterable[Part]
    ) -> Sequence[Answer]: ...


def here(function: Callable[[Part], Answer], parts: Iterable[Part]) -> Sequence[Answer]:
    """One after the other, in this process."""
    return [function(part) for part in parts]


def across_cores(function: Callable[[Part], Answer], parts: Iterable[Part]) -> Sequence[Answer]:
    """In forked processes, one a core, where there is enough to do for that."""
    waiting = list(parts)
    cores = len(os.sched_getaffinity(0))
    if len(waiting) < _WORTH_A_POOL or cores < 2:
        return here(function, waiting)
    gc.freeze()  # what is here now is not visited, and so not copied, by the children's collector
    try:
        with warnings.catch_warnings():
            # Python 3.12 and newer warn of threads; those of pyarrow are not used below.
            warnings.simplefilter("ignore", DeprecationWarning)
            context = multiprocessing.get_context("fork")
            with ProcessPoolExecutor(cores, mp_context=context) as pool:
                size = -(-len(waiting) // (_TASKS_PER_CORE * cores))
                return list(pool.map(function, waiting, chunksize=size))
    finally:
        gc.unfreeze()


def engine_of(name: str) -> Engine:
    """The engine of this name; a Ray cluster is joined, or started on this machine."""
    return _ray() if name == "ray" else across_cores


def _ray() -> Engine:
    try:
        import ray
    except ImportError:
        raise errors.missing_extra("ray", "ray", "--engine ray") from None
    if not ray.is_initialized():
        # RAY_ADDRESS names a cluster; without one, a local Ray ends with this process.
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    cluster: Any = ray
    remote = cluster.remote(_work_off)

    def distribute(function: Callable[[Part], Answer], parts: Iterable[Part]) -> Sequence[Answer]:
        waiting = list(parts)
        cores = max(int(cluster.cluster_resources().get("CPU", 1)), 1)
        size = max(-(-len(waiting) // (_TASKS_PER_CORE * cores)), 1)
        bundles = [waiting[i : i + size] for i in range(0, len(waiting), size)]
        tasks = [remote.remote(function, bundle) for bundle in bundles]
        return [answer for answers in ray.get(tasks) for answer in answers]

    return distribute


def _work_off(function: Callable[[Part], Answer], bundle: Sequence[Part]) -> list[Answer]:
    return [function(part) for part in bundle]
