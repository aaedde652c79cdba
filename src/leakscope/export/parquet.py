"""A recording as Parquet: rows as columns, everything else as lines; read again by `packed`.

    <run>.packed/
        run.json                         the header, as it was
        pack.json                        what reading the recording came across
        pulses/rank=3/<file>.parquet     rows: process, source, step, mono_ns and the counters
        records/<file>.parquet           all other records: type, and the record as JSON

One file of the recording becomes one file of each kind, so the files of a job can be packed each
next to where it lies. `rank` is a Hive partition: Spark, Dask, Polars and DuckDB know it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from leakscope import errors
from leakscope.engines import Engine, here
from leakscope.model import Pulses, Record
from leakscope.record.format import RUN_FILE, SUFFIX, encode, undo_delta, write_run
from leakscope.record.reader import read_lines, read_run
from leakscope.record.snapshot_file import FOLDER

PACK_FILE = "pack.json"
PULSES = "pulses"
RECORDS = "records"
NO_RANK = "__HIVE_DEFAULT_PARTITION__"
"""What Hive, and all who read its layout, call the partition of rows without a value."""

SPENT = b"leakscope.spent_ns"
_LEVEL = 6
"""Of zstd. The integers are stored as differences, which leaves little for a higher level."""


class Packed(msgspec.Struct, frozen=True):
    """What `pack.json` has, and what packing one file comes to."""

    rows: int = 0
    torn_lines: int = 0
    unknown_records: int = 0
    size_bytes: int = 0

    def __add__(self, other: Packed) -> Packed:
        return Packed(
            self.rows + other.rows,
            self.torn_lines + other.torn_lines,
            self.unknown_records + other.unknown_records,
            self.size_bytes + other.size_bytes,
        )


class Part(NamedTuple):
    """One file to pack."""

    directory: str
    file: str
    out: str


def pack(directory: str, out: str, engine: Engine = here) -> Packed:
    """Write a recording as Parquet into a new folder."""
    _pyarrow()
    run = read_run(directory)
    if os.path.exists(out) and (not os.path.isdir(out) or os.listdir(out)):
        raise errors.cannot_write(out, "it exists already")
    names = sorted(name for name in os.listdir(directory) if name.endswith(SUFFIX))
    try:
        os.makedirs(os.path.join(out, RECORDS), exist_ok=True)
        parts = [Part(os.path.abspath(directory), name, os.path.abspath(out)) for name in names]
        whole = sum(engine(pack_file, parts), Packed())
        snapshots = os.path.join(directory, FOLDER)
        if os.path.isdir(snapshots):
            shutil.copytree(snapshots, os.path.join(out, FOLDER))
        with open(os.path.join(out, PACK_FILE), "wb") as file:
            file.write(msgspec.json.encode(whole) + b"\n")
        write_run(out, run)  # last: a folder without it is no recording
    except OSError as error:
        raise errors.cannot_write(out, error.strerror or str(error)) from None
    return whole


def pack_file(part: Part) -> Packed:
    """One file of the recording, wherever that is done."""
    rows = _Rows()
    types: list[str] = []
    lines: list[bytes] = []
    torn = unknown = 0
    path = os.path.join(part.directory, part.file)
    for record in read_lines(path):
        match record:
            case Pulses():
                rows.add(record)
            case None:
                torn += 1
            case msgspec.Raw():
                unknown += 1
            case _:
                types.append(_type_of(record))
                lines.append(encode(record))
    pa, pq = _pyarrow()
    stem = part.file.removesuffix(SUFFIX)
    records = pa.table({"type": pa.array(types, pa.string()), "record": pa.array(lines)})
    pq.write_table(
        records,
        os.path.join(part.out, RECORDS, f"{stem}.parquet"),
        compression="zstd",
        compression_level=_LEVEL,
    )
    if rows.length:
        folder = os.path.join(part.out, PULSES, f"rank={_rank_of(part.file)}")
        os.makedirs(folder, exist_ok=True)
        rows.write(os.path.join(folder, f"{stem}.parquet"))
    return Packed(rows.length, torn, unknown, _whole_bytes(path))


class _Rows:
    """The rows of one file, gathered column by column."""

    def __init__(self) -> None:
        self.length = 0
        self._names: list[str] = []
        self._sources: list[str] = []
        self._columns: dict[str, list[int | None]] = {}
        self._spent: dict[str, int] = {}

    def add(self, block: Pulses) -> None:
        count = max((len(column) for column in block.columns.values()), default=0)
        for name in {*block.columns, *self._columns}:
            column = self._columns.setdefault(name, [None] * self.length)
            values = undo_delta(block.columns.get(name, ()))
            column.extend(values)
            column.extend([None] * (count - len(values)))
        self._names += [block.process] * count
        self._sources += [block.source] * count
        self.length += count
        self._spent[block.process] = max(block.spent_ns, self._spent.get(block.process, 0))

    def write(self, path: str) -> None:
        pa, pq = _pyarrow()
        words = pa.dictionary(pa.int32(), pa.string())
        arrays = {
            "process": pa.array(self._names).cast(words),
            "source": pa.array(self._sources).cast(words),
        }
        arrays |= {
            name: pa.array(values, pa.int64()) for name, values in sorted(self._columns.items())
        }
        table = pa.table(arrays).replace_schema_metadata({SPENT: msgspec.json.encode(self._spent)})
        pq.write_table(
            table,
            path,
            compression="zstd",
            compression_level=_LEVEL,
            use_dictionary=["process", "source"],
            column_encoding=dict.fromkeys(self._columns, "DELTA_BINARY_PACKED"),
        )


def _whole_bytes(path: str) -> int:
    """Up to the last line break, as the reader of the recording counts them."""
    with open(path, "rb") as file:
        return file.read().rfind(b"\n") + 1


def _type_of(record: Record) -> str:
    return str(type(record).__struct_config__.tag)


def _rank_of(file: str) -> str:
    found = re.search(r"\.rank(\d+)\.", file)
    return found.group(1) if found else NO_RANK


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise errors.missing_extra("pyarrow", "scale", "packed recordings") from None
    return pa, pq


def files_of(out: str) -> Iterator[str]:
    """Every file of a packed recording on this machine, for adding up what it takes."""
    for folder, _, names in os.walk(out):
        yield from (os.path.join(folder, name) for name in names)


__all__ = ["NO_RANK", "PACK_FILE", "PULSES", "RECORDS", "RUN_FILE", "SPENT", "Packed", "pack"]
