"""Recordings of several machines in, one recording of the job out.

Process numbers are unique on one machine only, and every machine's clock began at its own start:
processes get the name of their machine, and all moments are put on the clock of the first one by
what the clock on the wall said, which machines of a cluster agree on.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

import msgspec

from leakscope import errors
from leakscope.model import (
    BlackBox,
    Gap,
    Machine,
    Moment,
    ProcessStart,
    Pulses,
    Record,
    Run,
    Snapshot,
)
from leakscope.record.format import (
    SUFFIX,
    is_machine,
    machine_rows,
    process_of,
    safe_host,
    write_run,
)
from leakscope.record.reader import read_lines, read_run
from leakscope.record.snapshot_file import FOLDER
from leakscope.record.writer import Writer


def merge(directories: Sequence[str], out: str) -> Run:
    """Write one recording from several; those stay as they are."""
    runs = [read_run(directory) for directory in directories]
    if os.path.exists(out) and (not os.path.isdir(out) or os.listdir(out)):
        raise errors.cannot_write(out, "it exists already")
    first = runs[0]
    taken: set[str] = set()
    hosts: dict[str, Machine] = {}
    try:
        os.makedirs(out, exist_ok=True)
        for number, (directory, run) in enumerate(zip(directories, runs, strict=True)):
            host = safe_host(run.machine.host)
            hosts.setdefault(host, run.machine)
            _Mover(directory, host, _behind_ns(run, first), taken).move(out, number)
        whole = msgspec.structs.replace(
            first,
            id=os.path.basename(os.path.abspath(out)),
            machine=msgspec.structs.replace(first.machine, host=safe_host(first.machine.host)),
            hosts=hosts,
        )
        write_run(out, whole)  # last: a folder without it is no recording
    except OSError as error:
        raise errors.cannot_write(out, error.strerror or str(error)) from None
    return whole


def _behind_ns(run: Run, first: Run) -> int:
    """What to add to this run's moments to have them on the first one's clock."""
    ours, theirs = (one.started_wall_ns - one.started_mono_ns for one in (run, first))
    return ours - theirs


class _Mover:
    """Copies the files of one recording under names that no other machine has."""

    def __init__(self, directory: str, host: str, shift_ns: int, taken: set[str]) -> None:
        self._directory = directory
        self._host = host
        self._shift_ns = shift_ns
        self._taken = taken
        self._names: dict[str, str] = {}
        self._out = ""

    def move(self, out: str, number: int) -> None:
        for file in sorted(os.listdir(self._directory)):
            if not file.endswith(SUFFIX):
                continue
            process = process_of(file)
            if process is None:
                name = f"{file.removesuffix(SUFFIX)}.{self._host}.{number}{SUFFIX}"
            else:
                name = file.replace(process, self._name(process), 1)
            self._out = out
            writer = Writer(os.path.join(out, name))
            torn = 0
            for record in read_lines(os.path.join(self._directory, file)):
                if record is None:
                    torn += 1
                elif not isinstance(record, msgspec.Raw) and not writer.append(self._moved(record)):
                    raise OSError(0, writer.last_error or "write failed")
            if torn:
                why = "torn: the writer was stopped in the middle"
                writer.append(Gap(f"{torn} lines of {file} on {self._host}", why))
            writer.close()

    def _name(self, process: str) -> str:
        if process not in self._names:
            if is_machine(process):
                new = machine_rows(self._host)
            else:
                new = f"{process}@{self._host}"
                while new in self._taken:
                    new += "+"  # another container with the same name and the same numbers
                self._taken.add(new)
            self._names[process] = new
        return self._names[process]

    def _moved(self, record: Record) -> Record:
        changes: dict[str, object] = {}
        if record.process is not None:
            changes["process"] = self._name(record.process)
        if isinstance(record, ProcessStart):
            changes["host"] = self._host
        if isinstance(record, Snapshot) and record.file:
            changes["file"] = self._copied(record.file, str(changes["process"]))
        if isinstance(record, BlackBox) and record.snapshot:
            changes["snapshot"] = self._copied(record.snapshot, str(changes["process"]))
        if isinstance(record, Pulses):
            column = record.columns.get("mono_ns")
            if column:
                changes["columns"] = record.columns | {"mono_ns": self._shifted(column)}
        elif not isinstance(record, Gap) and hasattr(record, "at"):
            at: Moment = record.at
            changes["at"] = msgspec.structs.replace(at, mono_ns=at.mono_ns + self._shift_ns)
        return msgspec.structs.replace(record, **changes)

    def _copied(self, file: str, process: str) -> str:
        """A heap snapshot, under the new name of its process; nothing if it is not there."""
        number = file.rpartition("-")[2]
        name = f"{FOLDER}/{process}-{number}"
        try:
            os.makedirs(os.path.join(self._out, FOLDER), exist_ok=True)
            shutil.copyfile(os.path.join(self._directory, file), os.path.join(self._out, name))
        except FileNotFoundError:
            return ""
        return name

    def _shifted(self, column: list[int | None]) -> list[int | None]:
        """Differences stay what they are; the first value carries the clock."""
        place = next((i for i, value in enumerate(column) if value is not None), None)
        if place is None:
            return column
        moved = list(column)
        moved[place] = (moved[place] or 0) + self._shift_ns
        return moved
