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

from leakscope.model import Gap, Moment, ProcessEnd, ProcessStart, Pulses, Sample, Source
from leakscope.observe.crowds import Crowds, script_of
from leakscope.observe.limits import Cgroup, find_cgroup, read_meminfo
from leakscope.observe.loaded import Loading, Mapped, record_of
from leakscope.observe.processes import (
    Found,
    Watched,
    command_of,
    environment_of,
    find_tree,
)
from leakscope.record.format import (
    JOB_VARIABLES,
    MACHINE,
    SUPERVISOR_FILE,
    delta_code,
    name_process,
    storable,
)
from leakscope.record.secrets import hide_in_command
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
"""RSS is read at least 300 times in any run: every 5 ms at first, every second after 5 minutes."""

_COST_OF_ONE_S = 20e-6
_FAST_PAUSE = 50
"""Reading one process costs some 20 µs of Python; with hundreds of them the pace is lowered."""

_TREE_S = 0.05
_SETTLED_S = 1.0
_TREE_PAUSE = 30
_SLOW_PAUSE_ALONE = 100
_SLOW_PAUSE_GROWING = 20
_SLOW_PAUSE_FAMILY = 8
_SLOW_SHARE_OF_AGE = 1 / 25
_CHANGED = 0.04
"""smaps_rollup costs 6 to 21 ms a GiB of RSS and is repeated after so many times its cost: sooner
when RSS has changed by 4 % since, for then the question is what it consists of. With children
around, shared against private pages is the question, and a worker may live for two seconds only,
so it is asked more often; a 25th of the age soon makes that rare."""
_FLUSH_S = 0.5


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


class _Member:
    """A live process of the tree, with its rows that are not written yet."""

    def __init__(self, found: Found) -> None:
        self.watched = Watched(found)
        self.mono_ns: list[int | None] = []
        self.rss_bytes: list[int | None] = []
        self.command: tuple[str, ...] = ()
        self.next_slow_s = 0.0
        self.next_slow_if_changed_s = 0.0
        self.slow_rss_bytes = 0
        self.first_seen_s = time.monotonic()
        self.loading = Loading()


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
        self._members: dict[str, _Member] = {}
        self._machine_rows: dict[str, list[int | None]] = {}
        self._cgroup: Cgroup | None = None
        self._next_tree_s = self._next_flush_s = self._next_machine_s = 0.0
        self._root_pid = 0
        self._program_process = ""
        self.end: ProcessEnd | None = None
        """How the program ended: known here even if a full disk kept it out of the recording."""
        self._gaps: set[Gap] = set()
        self._mapped: dict[str, Mapped] = {}
        self._zombies_count = 0
        self._crowds = Crowds()

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
            self._cgroup = find_cgroup(program.pid)
            # It may be over before the first look at the tree; it was there all the same.
            pid = self._root_pid = program.pid
            self._program_process = name_process(pid)
            main = Found(self._program_process, pid, os.getpid())
            self._introduce(main, tuple(map(storable, self._command)))
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
            self._look_safely(now_s)
            if self._beside is not None:
                self._beside.attend()
            fast_s = _FAST_PAUSE * _COST_OF_ONE_S * len(self._members)
            pause_s = min(max(_FASTEST_S, age_s * _SHARE_OF_AGE, fast_s), _SLOWEST_S)
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

    # ── looking ──

    def _look_safely(self, now_s: float) -> None:
        """Whatever fails here, the program has a parent that waits for it to the end."""
        try:
            self._look(now_s)
        except Exception as error:  # noqa: BLE001 - becomes a gap, each kind once
            gap = Gap("process tree, at times", f"{type(error).__name__}: {error}")
            if gap not in self._gaps:
                self._gaps.add(gap)
                self._writer.append(gap)

    def _look(self, now_s: float) -> None:
        if now_s >= self._next_tree_s:
            began_s = time.thread_time()
            self._find_members()
            cost_s = time.thread_time() - began_s
            self._next_tree_s = now_s + max(_TREE_S, _TREE_PAUSE * cost_s)
        for process, member in list(self._members.items()):
            rss = member.watched.rss_bytes()
            if rss is None:
                # The program itself is lost in `_finish`, with its exit status.
                if member.watched.found.pid != self._root_pid:
                    self._lose_member(process)
            else:
                member.mono_ns.append(time.monotonic_ns())
                member.rss_bytes.append(rss)
                self._read_slowly(process, member, rss)
                self._read_loaded(process, member, now_s)
        if now_s >= self._next_machine_s:
            self._read_machine()
            self._next_machine_s = now_s + 10 * _FASTEST_S
        if now_s >= self._next_flush_s:
            self._flush()
            self._next_flush_s = now_s + _FLUSH_S

    def _find_members(self) -> None:
        zombies: list[int] = []
        tree = find_tree(self._root_pid, zombies)
        self._zombies_count = len(zombies)
        for parent in self._crowds.meet(tree):
            self._tell_script(parent)
        for found in tree:
            member = self._members.get(found.process)
            if member is None:
                try:
                    member = self._members[found.process] = _Member(found)
                except OSError:
                    continue  # ended while we were looking
            if time.monotonic() - member.first_seen_s < _SETTLED_S:
                # Seen between fork and exec, it still looks like its parent.
                command = command_of(found.pid)
                if command and command != member.command:
                    member.command = command
                    self._introduce(found, command)

    def _tell_script(self, parent: Found) -> None:
        """The text of a script whose processes pile up: it has the line that starts them."""
        script = script_of(parent.pid)
        if script is not None:
            self._writer.append(Source(parent.process, *script))

    def _introduce(self, found: Found, command: tuple[str, ...]) -> None:
        kind = "main" if found.pid == self._root_pid else kind_of(command)
        self._writer.append(
            ProcessStart(
                process=found.process,
                pid=found.pid,
                parent_pid=found.parent_pid,
                at=_now(),
                kind=kind,
                command=hide_in_command(command, self._environment),
                environment=environment_of(found.pid, JOB_VARIABLES),
            )
        )
        if (flag := unfollowed_flag(command)) is not None:
            what = f"inside of process {found.pid} (python {flag})"
            why = f"python {flag} starts without the environment through which the agent comes"
            self._writer.append(Gap(what, why, found.process))

    def _read_slowly(self, process: str, member: _Member, rss_bytes: int) -> None:
        began_s = time.monotonic()
        has_changed = abs(rss_bytes - member.slow_rss_bytes) > _CHANGED * member.slow_rss_bytes
        due_s = member.next_slow_if_changed_s if has_changed else member.next_slow_s
        if began_s < due_s:
            return
        member.slow_rss_bytes = rss_bytes
        # Our own processor time: on a busy machine the clock would count the others' too.
        cost_began_s = time.thread_time()
        values, gaps = member.watched.read_slow()
        if values:
            self._writer.append(Sample(_now(), process, "process", values, gaps))
        cost_s = time.thread_time() - cost_began_s
        pause = _SLOW_PAUSE_FAMILY if len(self._members) > 1 else _SLOW_PAUSE_ALONE
        age_s = began_s - member.first_seen_s
        member.next_slow_s = began_s + max(cost_s * pause, age_s * _SLOW_SHARE_OF_AGE, 0.03)
        soonest_s = began_s + max(cost_s * min(pause, _SLOW_PAUSE_GROWING), 0.03)
        member.next_slow_if_changed_s = min(soonest_s, member.next_slow_s)

    def _read_loaded(self, process: str, member: _Member, now_s: float) -> None:
        loading = member.loading
        if loading.read_if_due(member.watched.found.pid, now_s - member.first_seen_s):
            assert loading.mapped is not None
            self._mapped[process] = loading.mapped
            self._writer.append(record_of(loading.mapped, process, _now()))

    def _read_machine(self) -> None:
        values = self._cgroup.read() if self._cgroup is not None else {}
        with suppress(OSError):
            values |= read_meminfo()
        values["mono_ns"] = time.monotonic_ns()
        values["zombies_count"] = self._zombies_count
        length = max((len(column) for column in self._machine_rows.values()), default=0)
        for name in {*values, *self._machine_rows}:
            column = self._machine_rows.setdefault(name, [None] * length)
            column.append(values.get(name))

    # ── writing ──

    def _flush(self) -> None:
        for process, member in self._members.items():
            self._write_rows(process, member)
        if self._machine_rows:
            columns = {name: delta_code(column) for name, column in self._machine_rows.items()}
            self._writer.append(Pulses(MACHINE, "time", columns))
            self._machine_rows.clear()

    def _write_rows(self, process: str, member: _Member) -> None:
        if member.mono_ns:
            columns = {
                "mono_ns": delta_code(member.mono_ns),
                "rss_bytes": delta_code(member.rss_bytes),
            }
            self._writer.append(Pulses(process, "time", columns))
            member.mono_ns.clear()
            member.rss_bytes.clear()

    def _lose_member(self, process: str) -> None:
        member = self._members.pop(process)
        self._write_rows(process, member)
        member.watched.close()
        self._writer.append(ProcessEnd(_now(), process))

    def _finish(self, program: subprocess.Popen[bytes], status: int, peak: int) -> Exited:
        exit_code = os.waitstatus_to_exitcode(status)
        program.returncode = exit_code  # Popen must not wait for a process we have reaped
        ended = Exited(None, -exit_code) if exit_code < 0 else Exited(exit_code, None)
        self._read_machine()
        self._flush()
        values = {"peak_rss_bytes": peak, "supervisor_cpu_ns": time.process_time_ns()}
        if self._cgroup is not None and (limit := self._cgroup.limit_bytes()) is not None:
            values["limit_bytes"] = limit
        for process, member in self._members.items():
            if process != self._program_process:
                self._writer.append(ProcessEnd(_now(), process))
            member.watched.close()
        self._members.clear()
        self.end = ProcessEnd(_now(), self._program_process, ended.code, ended.signal, values)
        self._writer.append(self.end)
        self._write_packages()
        return ended

    def _write_packages(self) -> None:
        """Once for each set of libraries: workers have what their parent has."""
        written: list[Mapped] = []
        for process, mapped in self._mapped.items():
            if mapped not in written:
                written.append(mapped)
                self._writer.append(record_of(mapped, process, _now(), has_packages=True))


def _give_back(mask: Iterable[int], on_child: Any) -> None:
    """Signals as the caller had them."""
    signal.signal(signal.SIGCHLD, on_child or signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def kind_of(command: Sequence[str]) -> str:
    """What a child is for, from its command line alone; an agent inside knows better."""
    line = " ".join(command[:4])
    if "multiprocessing.resource_tracker" in line or "multiprocessing.forkserver" in line:
        return "helper"
    return "child"


def unfollowed_flag(command: Sequence[str]) -> str | None:
    """The interpreter flag that keeps the agent out, if this is a Python started with one."""
    if not command or not os.path.basename(command[0]).startswith("python"):
        return None
    words = iter(command[1:])
    for word in words:
        if word == "--check-hash-based-pycs":
            next(words, None)
        if word.startswith("--"):
            continue
        if not word.startswith("-") or word == "-":
            return None
        for position, letter in enumerate(word[1:], start=1):
            if letter in "IES":
                return f"-{letter}"
            if letter in "cm":
                return None  # all that follows is the program's
            if letter in "WX":
                if position == len(word) - 1:
                    next(words, None)  # its value is the next word
                break
    return None


def _now() -> Moment:
    return Moment(time.time_ns(), time.monotonic_ns())
