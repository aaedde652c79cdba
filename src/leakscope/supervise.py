"""`leakscope run` from outside: starts the program, samples its process tree, outlives it.

The program keeps its terminal, its stdin, its process group and its exit status. Nothing is
sampled by a thread inside it, and a SIGKILL of it ends only it: this side still has the record.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from leakscope.model import ProcessEnd
from leakscope.observe.processes.proc_files import Found
from leakscope.observe.processes.tree import Family, crowding, now
from leakscope.record.format import SUPERVISOR_FILE, name_process, storable
from leakscope.record.writer import Writer

_HEARD = {
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCHLD,
}
_FROM_KERNEL = 0x80
"""si_code of a signal the terminal sends to the whole foreground group: the program has it too."""

_FASTEST_S = 0.005
_SLOWEST_S = 1.0
_SHARE_OF_AGE = 1 / 300
"""RSS is read at least 300 times in any run: every 5 ms at first, every second after 5 minutes. In
a crowd of nine it is some 90 times: what is inside of them reads it too."""

_COST_OF_ONE_S = 20e-6
_FAST_PAUSE = 50
"""Reading one process costs some 20 µs of Python; with hundreds of them the pace is lowered."""


class Exited(NamedTuple):
    """How the program ended, as `wait4` told it."""

    code: int | None
    signal: int | None


class Streams(NamedTuple):
    """Descriptors for the program to use; None where it keeps the caller's own."""

    stdin: int | None = None
    stdout: int | None = None
    stderr: int | None = None


class Beside(Protocol):
    """Something that has the terminal while the program runs, such as the live view."""

    @property
    def streams(self) -> Streams: ...

    def attend(self) -> None:
        """Called again and again while the program runs. Must not raise or wait."""


class Supervisor:
    """Runs one command to its end and records what can be seen of it from outside."""

    def __init__(
        self,
        directory: str,
        command: Sequence[str],
        environment: dict[str, str],
        beside: Beside | None = None,
    ) -> None:
        self._command = command
        self._beside = beside
        self._environment = environment
        self._writer = Writer(os.path.join(directory, SUPERVISOR_FILE))
        self._family = Family(self._writer, environment)
        self._program_process = ""
        self.end: ProcessEnd | None = None
        """How the program ended: known here even if a full disk kept it out of the recording."""

    @property
    def lost_records(self) -> int:
        return self._writer.lost_records

    @property
    def last_error(self) -> str | None:
        return self._writer.last_error

    def run(self) -> Exited:
        """Start the program and watch it until it ends. OSError if it cannot be started."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
        # Where the caller ignores SIGCHLD the kernel would throw away the exit status.
        on_child = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        try:
            streams = self._beside.streams if self._beside is not None else Streams()
            program = subprocess.Popen(
                self._command,
                stdin=streams.stdin,
                stdout=streams.stdout,
                stderr=streams.stderr,
                env=self._environment,
                close_fds=False,  # what the caller hands down is the program's; ours close on exec
                # Blocked signals are inherited; the program must start with the caller's mask.
                # This process has no other thread, so Python code before the exec is safe.
                preexec_fn=lambda: _give_back(before, on_child),  # noqa: PLW1509
            )
            self._program_process = name_process(program.pid)
            main = Found(self._program_process, program.pid, os.getpid())
            self._family.begin(main, tuple(map(storable, self._command)))
            self._family.find_driver()
            return self._watch(program)
        finally:
            # Whatever still waits was meant for the program, and must not end the report.
            while signal.sigtimedwait(_HEARD, 0) is not None:
                pass
            _give_back(before, on_child)
            self._writer.close()

    def _watch(self, program: subprocess.Popen[bytes]) -> Exited:
        started_s = time.monotonic()
        while True:
            now_s = time.monotonic()
            age_s = now_s - started_s
            self._family.look(now_s)
            if self._beside is not None:
                self._beside.attend()
            members = len(self._family)
            fast_s = _FAST_PAUSE * _COST_OF_ONE_S * members
            by_age_s = age_s * _SHARE_OF_AGE * crowding(members)
            pause_s = min(max(_FASTEST_S, by_age_s, fast_s), _SLOWEST_S)
            self._listen(program.pid, pause_s)
            pid, status, usage = os.wait4(program.pid, os.WNOHANG)
            if pid:
                return self._finish(program, status, usage.ru_maxrss * 1024)

    def _listen(self, pid: int, seconds: float) -> None:
        """Wait, hand on what was sent to us alone, and wake when the program ends."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            heard = signal.sigtimedwait(_HEARD, left)
            if heard is None:
                return
            if heard.si_signo == signal.SIGCHLD:
                return  # the program has ended, or what runs beside it
            if heard.si_code != _FROM_KERNEL:
                with suppress(OSError):  # a program of another user: the sender fails there too
                    os.kill(pid, heard.si_signo)

    def _finish(self, program: subprocess.Popen[bytes], status: int, peak: int) -> Exited:
        exit_code = os.waitstatus_to_exitcode(status)
        program.returncode = exit_code  # Popen must not wait for a process we have reaped
        ended = Exited(None, -exit_code) if exit_code < 0 else Exited(exit_code, None)
        values = {"peak_rss_bytes": peak, "supervisor_cpu_ns": time.process_time_ns()}
        if (limit := self._family.limit_bytes) is not None:
            values["limit_bytes"] = limit
        self._family.end(self._program_process)
        self.end = ProcessEnd(now(), self._program_process, ended.code, ended.signal, values)
        self._writer.append(self.end)
        self._family.write_packages()
        return ended


def _give_back(mask: Iterable[int], on_child: Any) -> None:
    """Signals as the caller had them."""
    signal.signal(signal.SIGCHLD, on_child or signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
