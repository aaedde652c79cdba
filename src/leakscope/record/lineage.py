"""Who started whom, and which processes are the ranks of a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from leakscope.model import ProcessStart
from leakscope.record.format import RANK_VARIABLES, RESTART_VARIABLES, number_in


class Place(NamedTuple):
    """Of a process in a job of many."""

    rank: int
    restart: int
    host: str


class Lineage:
    """Family relations of a run, by the machine and the number of each process."""

    def __init__(self, starts: Mapping[str, ProcessStart], host: str) -> None:
        self._starts = starts
        self._host = host
        self._by_pid = {(one.host, one.pid): process for process, one in starts.items()}
        self._launchers = {
            parent
            for process, start in starts.items()
            if "LOCAL_RANK" in start.environment
            and (parent := self.parent_of(process)) is not None
            and "LOCAL_RANK" not in starts[parent].environment
        }
        """They have a rank at most by inheritance: those below them are told theirs."""

    def parent_of(self, process: str) -> str | None:
        start = self._starts.get(process)
        return self._by_pid.get((start.host, start.parent_pid)) if start is not None else None

    def host_of(self, process: str) -> str:
        start = self._starts.get(process)
        return (start.host if start is not None else "") or self._host

    def started_by(self, process: str) -> str:
        """fork, spawn, forkserver or exec: a forked process has the words of its parent."""
        start = self._starts.get(process)
        if start is None or start.kind == "main" or not start.command:
            return ""
        if "multiprocessing.spawn" in " ".join(start.command):
            return "spawn"
        parent = self.parent_of(process)
        above = self._starts[parent].command if parent is not None else ()
        if "multiprocessing.forkserver" in " ".join(above):
            return "forkserver"
        return "fork" if start.command == above else "exec"

    def place_of(self, process: str) -> Place | None:
        """Where in the job the process belongs: a rank, or what a rank has started."""
        start = self._starts.get(process)
        if start is None or process in self._launchers:
            return None
        environment = start.environment
        rank = number_in(environment, RANK_VARIABLES)
        if rank is None or _is_alone(environment):
            return None
        restart = number_in(environment, RESTART_VARIABLES) or 0
        return Place(rank, restart, self.host_of(process))

    def is_rank(self, process: str) -> bool:
        """True for the rank itself. Its children inherit the variables: they are none."""
        place = self.place_of(process)
        if place is None or self._starts[process].kind in ("worker", "helper"):
            return False
        parent = self.parent_of(process)
        return parent is None or self.place_of(parent) != place

    def ranks(self) -> dict[str, Place]:
        """By process, the lowest rank first, and of one rank the first start first."""
        found = {process: self.place_of(process) for process in self._starts}
        ranks = {p: place for p, place in found.items() if place is not None and self.is_rank(p)}
        return dict(sorted(ranks.items(), key=lambda one: one[1]))


def _is_alone(environment: Mapping[str, str]) -> bool:
    """SLURM numbers every task, the only one of a batch script too."""
    return "RANK" not in environment and environment.get("SLURM_NTASKS") == "1"
