"""What multiprocessing made this process for, and which large things it has a copy of."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from time import monotonic_ns
from types import FunctionType
from typing import NamedTuple, Protocol

from leakscope.model import Tally
from leakscope.observe.anatomy import dict_of
from leakscope.observe.large_globals import large_globals

_POOL = "PoolWorker-"
_EXECUTOR = "concurrent.futures.process"
_LOADER = "torch.utils.data._utils.worker"
"""Modules of the functions that workers run, of an executor and of a data loader."""

_GLOBALS_NS = (200_000_000, 1_000_000_000, 10_000_000_000)
"""Ages at which a child's large globals are counted: by the first a worker has built its own, and
the others are for what it is given later. Each takes some 3 ms with torch's 2,000 modules."""

_ASKED_NS, _SHARE_OF_AGE = 50_000_000, 5
"""multiprocessing and torch.distributed are asked so far apart: that takes 45 µs, a third of what a
row does, and at every row made 0.2 % of an inference loop."""


class Role(NamedTuple):
    kind: str
    name: str


class Teller(Protocol):
    """What is needed of the agent."""

    kind: str

    def became(self, kind: str, name: str) -> None: ...
    def introduce(self) -> None: ...
    def census(self, probe: str, tallies: tuple[Tally, ...]) -> None: ...


class Childhood:
    """Of one process that another one made; asked at its rows, which is after the fork's hooks,
    for only then does multiprocessing tell a process which one it is."""

    def __init__(self) -> None:
        self._role: Role | None = None
        self._began_ns = monotonic_ns()
        self._counts_left = [self._began_ns + age_ns for age_ns in _GLOBALS_NS]
        self._next_asked_ns = 0
        self.group: dict[str, str] = {}
        """Rank and size of the job, where torch.distributed knows them and no launcher told."""

    @property
    def is_of_a_pool(self) -> bool:
        return self._role is not None and self._role.kind == "worker"

    @property
    def is_of_a_loader(self) -> bool:
        """Steps of its own are on their way: the batches that it fetches."""
        return self._role is not None and self._role.kind == "loader"

    def learn(self, teller: Teller) -> None:
        """The role, once it can be known."""
        if self._role is None and "multiprocessing.process" in sys.modules:
            self._role = role_of_process()
            if self._role is not None and teller.kind in ("process", "child"):
                # A process of no known use keeps its kind: whether it ticks depends on that.
                kind = self._role.kind if self.is_of_a_pool else teller.kind
                teller.became(kind, self._role.name)

    def on_row(self, teller: Teller) -> None:
        """The role, the rank, and a few times the large things of the program's modules."""
        now_ns = monotonic_ns()
        if now_ns < self._next_asked_ns:
            return
        self._next_asked_ns = now_ns + max(_ASKED_NS, (now_ns - self._began_ns) // _SHARE_OF_AGE)
        self.learn(teller)
        if not self.group and "RANK" not in os.environ:
            self.group = rank_in_group()
            if self.group:
                teller.introduce()
        # A loader's worker has what its parent had: of a data set, `observe/preloaded.py` tells.
        is_loaders = teller.kind == "worker" and not self.is_of_a_pool
        if self._role is None or is_loaders or not self._counts_left:
            return
        if now_ns >= self._counts_left[0]:
            self._counts_left = [moment for moment in self._counts_left if moment > now_ns]
            if tallies := large_globals():
                teller.census("globals", tallies)


def role_of_process() -> Role | None:
    """None where multiprocessing did not make it, or has not told it yet which one it is."""
    current = getattr(sys.modules.get("multiprocessing.process"), "_current_process", None)
    fields = dict_of(current) or {}
    name, target, number = (fields.get(key) for key in ("_name", "_target", "_identity"))
    if type(name) is not str or type(number) is not tuple or not number:
        return None  # the main process has no number
    if _POOL in name:
        return Role("worker", f"pool worker {name.rpartition('-')[2]}")
    if type(target) is FunctionType and target.__module__ == _EXECUTOR:
        return Role("worker", f"pool worker {number[-1]}")
    if type(target) is FunctionType and target.__module__ == _LOADER:
        return Role("loader", f"process {name}")
    return Role("child", f"process {name}")


def follow_named_forks(learn: Callable[[], None]) -> bool:
    """Have it called in each process that multiprocessing forks, once that knows which one it is.

    A worker may be ended before its first row: by then it is to have a name. False where
    multiprocessing is not in use yet; after True it must not be called again.
    """
    register = getattr(sys.modules.get("multiprocessing.util"), "register_after_fork", None)
    if not callable(register):
        return False
    register(learn, lambda learn: learn())  # kept as long as the first of them lives
    return True


def rank_in_group() -> dict[str, str]:
    """As torch.distributed has it, in the names that launchers use: processes that were started
    with `torch.multiprocessing.spawn` get their rank as an argument."""
    module = sys.modules.get("torch.distributed.distributed_c10d")
    world = getattr(getattr(module, "GroupMember", None), "WORLD", None)
    rank, size = getattr(world, "rank", None), getattr(world, "size", None)
    if not callable(rank) or not callable(size):
        return {}
    return {"RANK": str(rank()), "WORLD_SIZE": str(size())}
