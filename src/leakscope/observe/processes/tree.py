"""The processes below one program, sampled from outside: what each takes, and what the machine has.

For `leakscope run` and `leakscope attach` alike: it does not matter here who started the program.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from leakscope.model import (
    DRIVER_GAP,
    Gap,
    Moment,
    ProcessEnd,
    ProcessStart,
    Pulses,
    Sample,
    Source,
)
from leakscope.observe.devices.nvml import Nvml, open_nvml
from leakscope.observe.machine.limits import Cgroup, find_cgroup, read_meminfo
from leakscope.observe.machine.loaded import Loading, Mapped, record_of
from leakscope.observe.processes.crowding import Crowds, script_of
from leakscope.observe.processes.proc_files import (
    Found,
    Watched,
    age_of,
    command_of,
    environment_of,
    find_tree,
)
from leakscope.record.format import JOB_VARIABLES, MACHINE, delta_code
from leakscope.record.secrets import hide_in_command
from leakscope.record.writer import Writer

_MACHINE_S = 0.05
_TREE_S = 0.05
_SETTLED_S = 1.0
_TREE_PAUSE, _TREE_PAUSE_CALM, _CALM_S = 100, 400, 2.0
_MACHINE_PAUSE = 800
"""Walking a tree of nine costs 1 ms, the machine's own counters 0.1 to 0.3 ms (the kernel adds up
those of a cgroup when they are read): a quarter of a percent of a core each. While processes come,
the walk is worth more: where forty piled up one by one, they seemed to come in groups otherwise,
which no judge takes for growth."""
_SLOW_PAUSE_ALONE = 100
_SLOW_PAUSE_CROWD = 300
_SLOW_PAUSE_GROWING = 20
_SLOW_PAUSE_FAMILY = 8
_SMALL_FAMILY = 5
_YOUNG_S = 2.0
_SLOW_SHARE_OF_AGE = 1 / 25
_CHANGED = 0.04
"""smaps_rollup costs 6 to 21 ms a GiB of RSS and is repeated after so many times its cost: sooner
when RSS has changed by 4 % since, for then the question is what it consists of. With children
around, shared against private pages is the question, and a worker may live for two seconds only,
so it is asked more often while it is young: with 11 to 23 values a data set that is copied by
reading was told at a third of this pace it was not. All of them are
read by one process: for eight workers it must not take four times what it takes for two (9 % of
a core for a quarter of a minute, seen). Two seconds are a choice, and so is that the pause grows
with the square of the age, in a crowd with the fourth power: one second was tried, the square for
nine (3 % of a core from the 4th second to the 17th) and the fourth power for three (pages copied
late were missed). Of nine each has 20 values in those two seconds; two workers and what they call
are still a small family."""
_FLUSH_S = 0.5
_DEVICE_S = 0.1


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


class Family:
    """A program and all that it starts; what is read of them goes to the writer."""

    def __init__(self, writer: Writer, environment: Mapping[str, str]) -> None:
        """`environment`: the program's, whose secrets are not to be written down."""
        self._writer = writer
        self._environment = environment
        self._members: dict[str, _Member] = {}
        self._machine_rows: dict[str, list[int | None]] = {}
        self._cgroup: Cgroup | None = None
        self._started_s = 0.0
        self._next_tree_s = self._next_flush_s = self._next_machine_s = 0.0
        self._root_pid = 0
        self._last_met_s = 0.0
        self._gaps: set[Gap] = set()
        self._mapped: dict[str, Mapped] = {}
        self._zombies_count = self._walked_ns = 0
        self._crowds = Crowds()
        self._nvml: Nvml | None = None
        self._next_device_s = 0.0

    def begin(self, program: Found, command: tuple[str, ...]) -> None:
        """Before the first look: the program may be over by then, and was there all the same."""
        self._root_pid = program.pid
        self._cgroup = find_cgroup(program.pid)
        self._started_s = time.monotonic()
        self._introduce(program, command)

    def __len__(self) -> int:
        return len(self._members)

    @property
    def limit_bytes(self) -> int | None:
        return self._cgroup.limit_bytes() if self._cgroup is not None else None

    # ── looking ──

    def look(self, now_s: float) -> None:
        """Whatever fails here, the program has a parent that waits for it to the end."""
        try:
            self._look(now_s)
        except Exception as error:  # noqa: BLE001 - becomes a gap, each kind once
            gap = Gap("process tree, at times", f"{type(error).__name__}: {error}")
            if gap not in self._gaps:
                self._gaps.add(gap)
                self._writer.append(gap)

    def find_driver(self) -> None:
        found = open_nvml()
        if isinstance(found, str):
            self._writer.append(Gap(DRIVER_GAP, found))
        else:
            self._nvml = found

    def _read_devices(self, now_s: float) -> None:
        """What the driver says of each device: who has how much of it."""
        if self._nvml is None or now_s < self._next_device_s:
            return
        began_s = time.thread_time()
        for use in self._nvml.read():
            values = {
                "total_bytes": use.total_bytes,
                "driver_bytes": use.reserved_bytes,
                "used_bytes": use.used_bytes,
            }
            for pid, size in use.by_process.items():
                if size is not None:
                    values[f"process_{pid}_bytes"] = size
            self._writer.append(Sample(now(), MACHINE, use.uuid, values, self._nvml.gaps))
        cost_s = time.thread_time() - began_s
        age_s = now_s - self._started_s
        self._next_device_s = now_s + max(_DEVICE_S, 100 * cost_s, age_s * _SLOW_SHARE_OF_AGE)

    def _look(self, now_s: float) -> None:
        if now_s >= self._next_tree_s:
            began_s = time.thread_time()
            self._find_members()
            cost_s = time.thread_time() - began_s
            is_calm = now_s - self._last_met_s > _CALM_S
            pause = _TREE_PAUSE_CALM if is_calm else _TREE_PAUSE
            self._next_tree_s = now_s + max(_TREE_S, pause * cost_s)
        for process, member in list(self._members.items()):
            rss = member.watched.rss_bytes()
            if rss is None:
                # The program itself is lost by whoever waits for it, with its exit status.
                if member.watched.found.pid != self._root_pid:
                    self._lose_member(process)
            else:
                member.mono_ns.append(time.monotonic_ns())
                member.rss_bytes.append(rss)
                if now_s >= member.next_slow_if_changed_s:
                    self._read_slowly(process, member, rss)
                if now_s - member.first_seen_s >= member.loading.due_s:
                    self._read_loaded(process, member, now_s)
        if now_s >= self._next_machine_s:
            began_s = time.thread_time()
            self._read_machine()
            cost_s = time.thread_time() - began_s
            self._next_machine_s = now_s + max(_MACHINE_S, _MACHINE_PAUSE * cost_s)
        self._read_devices(now_s)
        if now_s >= self._next_flush_s:
            self.flush()
            self._next_flush_s = now_s + _FLUSH_S

    def _find_members(self) -> None:
        zombies: list[int] = []
        tree = find_tree(self._root_pid, zombies)
        self._zombies_count, self._walked_ns = len(zombies), time.monotonic_ns()
        for parent in self._crowds.meet(tree):
            self._tell_script(parent)
        for found in tree:
            member = self._members.get(found.process)
            if member is None:
                try:
                    member = self._members[found.process] = _Member(found)
                except OSError:
                    continue  # ended while we were looking
                self._last_met_s = member.first_seen_s
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
                at=self._moment_of_birth(found),
                kind=kind,
                command=hide_in_command(command, self._environment),
                environment=environment_of(found.pid, JOB_VARIABLES),
            )
        )
        if (flag := unfollowed_flag(command)) is not None:
            what = f"inside of process {found.pid} (python {flag})"
            why = f"python {flag} starts without the environment through which the agent comes"
            self._writer.append(Gap(what, why, found.process))

    def _moment_of_birth(self, found: Found) -> Moment:
        """To a hundredth of a second, by the kernel's word: in a large family the walk that finds a
        process is up to a second later. Not before we were there."""
        moment = now()
        watched_ns = int((time.monotonic() - self._started_s) * 1e9)
        age_ns = min(max(age_of(found.process), 0), watched_ns)
        return Moment(moment.wall_ns - age_ns, moment.mono_ns - age_ns)

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
            self._writer.append(Sample(now(), process, "process", values, gaps))
        cost_s = time.thread_time() - cost_began_s
        age_s, members = began_s - member.first_seen_s, len(self._members)
        pause = slow_pause(members, age_s)
        by_age_s = age_s * min(_SLOW_SHARE_OF_AGE * crowding(members), 1.0)
        member.next_slow_s = began_s + max(cost_s * pause, by_age_s, 0.03)
        soonest_s = began_s + max(cost_s * min(pause, _SLOW_PAUSE_GROWING * members), 0.03)
        member.next_slow_if_changed_s = min(soonest_s, member.next_slow_s)

    def _read_loaded(self, process: str, member: _Member, now_s: float) -> None:
        loading = member.loading
        age_s = now_s - member.first_seen_s
        if loading.read_if_due(member.watched.found.pid, age_s, crowding(len(self._members))):
            assert loading.mapped is not None
            self._mapped[process] = loading.mapped
            self._writer.append(record_of(loading.mapped, process, now()))

    def _read_machine(self) -> None:
        values = self._cgroup.read() if self._cgroup is not None else {}
        with suppress(OSError):
            values |= read_meminfo()
        values["mono_ns"] = time.monotonic_ns()
        values["zombies_count"] = self._zombies_count
        values["tree_mono_ns"] = self._walked_ns
        length = max((len(column) for column in self._machine_rows.values()), default=0)
        for name in {*values, *self._machine_rows}:
            column = self._machine_rows.setdefault(name, [None] * length)
            column.append(values.get(name))

    # ── writing ──

    def flush(self) -> None:
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
        self._writer.append(ProcessEnd(now(), process))

    def close(self) -> None:
        """We go; they stay."""
        self.flush()
        for member in self._members.values():
            member.watched.close()
        self._members.clear()

    def end(self, program: str) -> None:
        """The program has ended, and we have seen the last of the others, too."""
        self._read_machine()
        others = [process for process in self._members if process != program]
        self.close()
        for process in others:
            self._writer.append(ProcessEnd(now(), process))

    def write_packages(self) -> None:
        """Once for each set of libraries: workers have what their parent has."""
        written: list[Mapped] = []
        for process, mapped in self._mapped.items():
            if mapped not in written:
                written.append(mapped)
                self._writer.append(record_of(mapped, process, now(), has_packages=True))


def crowding(members: int) -> float:
    """How much more rarely each of so many is asked than each of a few."""
    return max(1.0, members / _SMALL_FAMILY) ** 2


def slow_pause(members: int, age_s: float) -> float:
    """After how many times its cost what a process of this age shares is read again."""
    if members == 1:
        return _SLOW_PAUSE_ALONE
    is_crowd = members > _SMALL_FAMILY
    power, most = (4, _SLOW_PAUSE_CROWD) if is_crowd else (2, _SLOW_PAUSE_ALONE)
    pause = _SLOW_PAUSE_FAMILY * crowding(members)
    return min(pause * max(1.0, age_s / _YOUNG_S) ** power, most * members)


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


def now() -> Moment:
    return Moment(time.time_ns(), time.monotonic_ns())
