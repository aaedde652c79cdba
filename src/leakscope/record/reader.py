"""Files in, `Recording` out: merges, forgives torn lines, follows a run that still grows."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from leakscope import errors
from leakscope.model import (
    FORMAT_VERSION,
    BlackBox,
    Census,
    Gap,
    Holding,
    Loaded,
    Mark,
    ProcessEnd,
    ProcessStart,
    Pulses,
    Record,
    Run,
    Sample,
    Snapshot,
    Source,
    Window,
)
from leakscope.record.format import (
    RUN_FILE,
    SUFFIX,
    decode_record,
    decode_run,
    process_of,
    undo_delta,
)
from leakscope.record.lineage import Lineage
from leakscope.record.snapshot_file import FOLDER

Columns = dict[str, list[int | None]]


class Recording:
    """All that is known of a run, in the order in which each process wrote it."""

    def __init__(self, run: Run, directory: str) -> None:
        self.run = run
        self.directory = directory
        self.starts: dict[str, ProcessStart] = {}
        self._told: dict[str, dict[bool, ProcessStart]] = {}
        """Who each process is, as the agent in it (True) and the supervisor last said."""
        self.ends: dict[str, ProcessEnd] = {}
        self.samples: list[Sample] = []
        self.marks: list[Mark] = []
        self.censuses: list[Census] = []
        self.gaps: list[Gap] = []
        self.holdings: list[Holding] = []
        self.snapshots: list[Snapshot] = []
        self.windows: list[Window] = []
        self.black_boxes: list[BlackBox] = []
        self.sources_of: dict[str, dict[str, str]] = {}
        """Texts of the program's files, by process and file."""
        self.loaded: dict[str, Loaded] = {}
        self.followed: set[str] = set()
        """Processes that wrote a file of their own."""
        self.spent_ns: dict[str, int] = {}
        self.torn_lines = 0
        self.unknown_records = 0
        self.size_bytes = 0
        self._blocks: dict[tuple[str, str], list[Pulses]] = {}
        self._joined: dict[tuple[str, str], Columns] = {}

    def add(self, record: Record) -> None:
        match record:
            case Pulses():
                key = (record.process, record.source)
                self._blocks.setdefault(key, []).append(record)
                self._joined.pop(key, None)
                self.spent_ns[record.process] = max(
                    record.spent_ns, self.spent_ns.get(record.process, 0)
                )
            case ProcessStart():
                self._merge_start(record)
            case ProcessEnd():
                self.ends[record.process] = record
            case Sample():
                self.samples.append(record)
            case Mark():
                self.marks.append(record)
            case Census():
                self.censuses.append(record)
            case Holding():
                self.holdings.append(record)
            case Snapshot():
                self.snapshots.append(record)
            case Window():
                self.windows.append(record)
            case BlackBox():
                self.black_boxes.append(record)
            case Source():
                self.sources_of.setdefault(record.process, {})[record.file] = record.text
            case Gap():
                self.gaps.append(record)
            case Loaded():
                self.loaded[record.process] = record

    def add_columns(self, process: str, source: str, columns: Columns, spent_ns: int) -> None:
        """All rows of one source at once, from where they lie as columns already."""
        self._blocks.setdefault((process, source), [])
        self._joined[process, source] = columns
        self.spent_ns[process] = max(spent_ns, self.spent_ns.get(process, 0))

    def _merge_start(self, new: ProcessStart) -> None:
        """The agent knows what a process is for; the supervisor knows its command line. Of each the
        latest word counts: seen between fork and exec, a process looks like its parent."""
        told = self._told.setdefault(new.process, {})
        told[bool(new.python)] = new
        agent, outside = told.get(True), told.get(False)
        if agent is None or outside is None:
            self.starts[new.process] = new
            return
        self.starts[new.process] = msgspec.structs.replace(
            agent,
            kind=outside.kind if agent.kind == "process" else agent.kind,
            name=agent.name or outside.name,
            command=outside.command or agent.command,
            environment={**outside.environment, **agent.environment},
            host=agent.host or outside.host,
        )

    def snapshot_source(self, process: str) -> str:
        """Whose steps the last heap snapshot of a process was numbered by; empty without one."""
        sources = [one.source for one in self.snapshots if one.process == process]
        return sources[-1] if sources else ""

    def lineage(self) -> Lineage:
        return Lineage(self.starts, self.run.machine.host)

    def pool_of(self, process: str) -> str:
        """The pool of a library in this process, for which bytes in use are what is resident and
        not held free; empty without one."""
        start = self.starts.get(process)
        return start.environment.get("pool", "") if start is not None else ""

    def sources(self, process: str) -> tuple[str, ...]:
        """Where the rows of a process come from, in order of first use."""
        return tuple(source for name, source in self._blocks if name == process)

    def pulsed(self) -> tuple[str, ...]:
        """Processes that have rows, in order of first row."""
        return tuple(dict.fromkeys(name for name, _ in self._blocks))

    def blocks(self, process: str, source: str) -> list[Pulses]:
        """As they were written, for whoever comes back for the new ones only."""
        return self._blocks.get((process, source), [])

    def columns(self, process: str, source: str) -> Columns:
        """All rows of one source, undone from their deltas; columns have equal lengths."""
        key = (process, source)
        if key not in self._joined:
            self._joined[key] = self._join(key)
        return self._joined[key]

    def _join(self, key: tuple[str, str]) -> Columns:
        joined: Columns = {}
        length = 0
        for block in self._blocks.get(key, ()):
            rows = max((len(column) for column in block.columns.values()), default=0)
            for name in {*joined, *block.columns}:
                column = joined.setdefault(name, [None] * length)
                new = undo_delta(block.columns.get(name, ()))
                column.extend(new)
                column.extend([None] * (rows - len(new)))
            length += rows
        return joined


class Reader:
    """Reads a folder; `poll()` again and again follows a run that is still being written."""

    def __init__(self, directory: str) -> None:
        self.directory = os.path.abspath(directory)
        self.recording = Recording(read_run(self.directory), self.directory)
        self._offsets: dict[str, int] = {}

    def poll(self) -> Recording:
        """Take in all complete lines written since the last call."""
        for name in sorted(os.listdir(self.directory)):
            if name.endswith(SUFFIX):
                for line in self._new_lines(name):
                    self._take(line)
        return self.recording

    def finish(self) -> Recording:
        """Like `poll`, and count what is left behind the last newline as torn."""
        self.poll()
        self.recording.size_bytes += _snapshot_bytes(self.directory)
        for name, offset in self._offsets.items():
            if os.path.getsize(os.path.join(self.directory, name)) > offset:
                self.recording.torn_lines += 1
        return self.recording

    def _new_lines(self, name: str) -> Iterator[bytes]:
        offset = self._offsets.setdefault(name, 0)
        with open(os.path.join(self.directory, name), "rb") as file:
            file.seek(offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offsets[name] += len(line)
                self.recording.size_bytes += len(line)
                if line.strip():
                    yield line
        if (process := process_of(name)) is not None:
            self.recording.followed.add(process)

    def _take(self, line: bytes) -> None:
        try:
            record = decode_record(line)
        except msgspec.ValidationError:
            # Whole JSON of a type or shape this version does not know.
            self.recording.unknown_records += 1
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.recording.torn_lines += 1
        else:
            self.recording.add(record)


def _snapshot_bytes(directory: str) -> int:
    """What the heap snapshots of a recording take on disk."""
    try:
        with os.scandir(os.path.join(directory, FOLDER)) as files:
            return sum(file.stat().st_size for file in files)
    except OSError:
        return 0


def read_run(directory: str) -> Run:
    """The header, or an error that says what is wrong with the folder."""
    path = os.path.join(directory, RUN_FILE)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except (FileNotFoundError, NotADirectoryError):
        raise errors.not_a_recording(directory) from None
    except OSError as error:
        raise errors.corrupt_recording(directory, error.strerror or str(error)) from None
    return parse_run(content, path)


def parse_run(content: bytes, path: str) -> Run:
    """The header from its text; `path` is for the error."""
    try:
        version = msgspec.json.decode(content, type=_Version).format
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise errors.corrupt_recording(path, str(error)) from None
    if version > FORMAT_VERSION:
        raise errors.recording_too_new(path, version, FORMAT_VERSION)
    try:
        return decode_run(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise errors.corrupt_recording(path, str(error)) from None


class _Version(msgspec.Struct):
    format: int


def read_lines(path: str) -> Iterator[Record | msgspec.Raw | None]:
    """Every record of one file; None for a torn line, and what this version does not know raw."""
    with open(path, "rb") as file:
        for line in file:
            if not line.strip():
                continue
            try:
                yield decode_record(line) if line.endswith(b"\n") else None
            except msgspec.ValidationError:
                yield msgspec.Raw(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                yield None


def load(directory: str) -> Recording:
    """Read a recording as far as it is whole."""
    return Reader(directory).finish()
