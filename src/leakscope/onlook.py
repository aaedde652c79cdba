"""`leakscope attach`: records a program that already runs, from outside, and is not its parent."""

from __future__ import annotations

import time
from contextlib import suppress

from leakscope.model import Gap
from leakscope.observe.limits import find_cgroup
from leakscope.observe.processes import Found, command_of
from leakscope.record.format import name_process
from leakscope.supervise import Supervisor

_FASTEST_S = 0.02
_SLOWEST_S = 1.0
_SHARE_OF_AGE = 1 / 300


class Onlooker(Supervisor):
    """Samples a process tree until it is gone, time is up, or somebody interrupts it."""

    def __init__(self, directory: str, pid: int) -> None:
        """OSError if there is no such process."""
        super().__init__(directory, command_of(pid), {})
        self._root_pid = pid
        self._program_process = name_process(pid)
        self._cgroup = find_cgroup(pid)

    def onlook(self, seconds: float | None) -> None:
        """Ctrl-C ends it early, and is no error. How the program ends is not ours to know."""
        self._introduce(Found(self._program_process, self._root_pid, 0), tuple(self._command))
        what = f"inside of process {self._root_pid} (attached)"
        why = "it ran before leakscope did: only its memory from outside is seen, no steps or lines"
        self._writer.append(Gap(what, why, self._program_process))
        began_s = time.monotonic()
        with suppress(KeyboardInterrupt):
            while self._is_there():
                age_s = time.monotonic() - began_s
                if seconds is not None and age_s >= seconds:
                    break
                self._look_safely(time.monotonic())
                pause_s = min(max(_FASTEST_S, age_s * _SHARE_OF_AGE), _SLOWEST_S)
                time.sleep(pause_s if seconds is None else min(pause_s, seconds - age_s))
        self._flush()
        for member in self._members.values():
            member.watched.close()
        self._writer.close()

    def _is_there(self) -> bool:
        """The same process, and not another one that got its number, nor its remains."""
        try:
            if name_process(self._root_pid) != self._program_process:
                return False
            with open(f"/proc/{self._root_pid}/stat", "rb") as stat:
                return stat.read().rpartition(b")")[2].split()[0] != b"Z"
        except (OSError, ValueError):
            return False
