"""`leakscope attach`: records a program that already runs, from outside, and is not its parent."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from leakscope.model import Gap
from leakscope.observe.processes.proc_files import Found, command_of
from leakscope.observe.processes.tree import Family
from leakscope.record.format import SUPERVISOR_FILE, name_process
from leakscope.record.writer import Writer

_FASTEST_S = 0.02
_SLOWEST_S = 1.0
_SHARE_OF_AGE = 1 / 300


class Onlooker:
    """Samples a process tree until it is gone, time is up, or somebody interrupts it."""

    def __init__(self, directory: str, pid: int) -> None:
        """OSError if there is no such process."""
        self._command = command_of(pid)
        self._pid = pid
        self._process = name_process(pid)
        self._writer = Writer(os.path.join(directory, SUPERVISOR_FILE))
        self._family = Family(self._writer, {})

    def onlook(self, seconds: float | None) -> None:
        """Ctrl-C ends it early, and is no error. How the program ends is not ours to know."""
        began_s = time.monotonic()
        what = f"inside of process {self._pid} (attached)"
        why = "it ran before leakscope did: only its memory from outside is seen, no steps or lines"
        with suppress(KeyboardInterrupt):
            self._family.begin(Found(self._process, self._pid, 0), self._command)
            self._writer.append(Gap(what, why, self._process))
            while self._is_there():
                age_s = time.monotonic() - began_s
                if seconds is not None and age_s >= seconds:
                    break
                self._family.look(time.monotonic())
                pause_s = min(max(_FASTEST_S, age_s * _SHARE_OF_AGE), _SLOWEST_S)
                time.sleep(pause_s if seconds is None else min(pause_s, seconds - age_s))
        self._family.close()
        self._writer.close()

    def _is_there(self) -> bool:
        """The same process, and not another one that got its number, nor its remains."""
        try:
            if name_process(self._pid) != self._process:
                return False
            with open(f"/proc/{self._pid}/stat", "rb") as stat:
                return stat.read().rpartition(b")")[2].split()[0] != b"Z"
        except (OSError, ValueError):
            return False
