"""A packed recording in, `Recording` out: from a folder, or from wherever fsspec reaches.

Of a process with very many rows every so many-th is taken, the first, the last and the highest
among them: the judge makes no more than 600 points of a series, and a job of 256 ranks and 20,000
steps has five million rows. Statistics over ranks are made from all rows, see `statistics`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from leakscope import errors
from leakscope.engines import Engine, here
from leakscope.export.parquet import PACK_FILE, PULSES, RECORDS, RUN_FILE, SPENT, Packed
from leakscope.record.format import SUFFIX, decode_record, process_of
from leakscope.record.reader import Columns, Recording, parse_run

MOST_ROWS = 1200
"""Of one source of one process. Below it nothing is left out, and the report of a packed recording
is that of the recording itself."""


class Store(NamedTuple):
    """Where a packed recording lies."""

    files: Any
    """A file system of fsspec."""
    root: str

    def path(self, *parts: str) -> str:
        return "/".join((self.root.rstrip("/"), *parts))

    def find(self, *parts: str) -> list[str]:
        """Parquet files below a folder, in the order of the recording's own files."""
        found = self.files.find(self.path(*parts)) if self.files.exists(self.path(*parts)) else []
        return sorted((one for one in found if one.endswith(".parquet")), key=_file_of)


def is_packed(path: str) -> bool:
    """True for anything with a scheme, and for folders that `leakscope pack` made."""
    return "://" in path or os.path.exists(os.path.join(path, PACK_FILE))


def open_store(path: str) -> Store:
    try:
        import fsspec
    except ImportError:
        raise errors.missing_extra("fsspec", "scale", "packed recordings") from None
    try:
        files, root = fsspec.core.url_to_fs(path)
    except (ImportError, ValueError) as error:  # a scheme that needs another package, or is none
        raise errors.cannot_reach(path, str(error)) from None
    return Store(files, root)


class PartOfPack(NamedTuple):
    """One Parquet file of rows."""

    path: str
    """As the user gave it: a task elsewhere opens it anew."""
    file: str
    most_rows: int


class Rows(NamedTuple):
    """The rows of one source of one process."""

    process: str
    source: str
    columns: Columns
    spent_ns: int


def read_packed(path: str, engine: Engine = here, *, most_rows: int = MOST_ROWS) -> Recording:
    """The recording, as far as a report needs it."""
    store = open_store(path)
    run = parse_run(_content(store, RUN_FILE, path), path)
    recording = Recording(run, path)
    try:
        noted = msgspec.json.decode(_content(store, PACK_FILE, path), type=Packed)
    except msgspec.DecodeError as error:
        raise errors.corrupt_recording(path, str(error)) from None
    recording.torn_lines = noted.torn_lines
    recording.unknown_records = noted.unknown_records
    recording.size_bytes = noted.size_bytes
    pulses = store.find(PULSES)
    parts = [PartOfPack(path, file, most_rows) for file in pulses]
    rows = dict(zip(map(_file_of, pulses), engine(read_rows, parts), strict=True))
    for file in store.find(RECORDS):
        name = _file_of(file)
        if (process := process_of(name)) is not None:
            recording.followed.add(process)
        for line in _lines(store, file):
            recording.add(decode_record(line))
        for each in rows.get(name, ()):
            recording.add_columns(*each)
    return recording


def read_rows(part: PartOfPack) -> Sequence[Rows]:
    """The rows of one file, thinned out, by process and source in the order they came in."""
    store = open_store(part.path)
    table = _table(store, part.file)
    spent = msgspec.json.decode(table.schema.metadata[SPENT], type=dict[str, int])
    counters = [name for name in table.column_names if name not in ("process", "source")]
    keys = table.select(["process", "source"]).combine_chunks()
    process, source = (keys[name].chunk(0) for name in ("process", "source"))
    import numpy as np

    codes = process.indices.to_numpy() * len(source.dictionary) + source.indices.to_numpy()
    _, firsts = np.unique(codes, return_index=True)
    found = []
    for first in np.sort(firsts):
        here_is = np.flatnonzero(codes == codes[first])
        chosen = _thinned(here_is, table, part.most_rows)
        # A counter that this source never has is no column of it.
        taken = table.select(counters).take(chosen)
        columns = {
            name: taken[name].to_pylist()
            for name in counters
            if taken[name].null_count < len(taken) or name in ("step", "mono_ns")
        }
        name = process[int(first)].as_py()
        found.append(Rows(name, source[int(first)].as_py(), columns, spent.get(name, 0)))
    return found


def _thinned(rows: Any, table: Any, most: int) -> Any:
    import numpy as np

    if len(rows) <= most:
        return rows
    stride = -(-len(rows) // most)
    kept = {int(rows[0]), *map(int, rows[::-1][::stride])}
    if "rss_bytes" in table.column_names:
        resident = table["rss_bytes"].take(rows).to_numpy(zero_copy_only=False).astype(float)
        if not np.isnan(resident).all():
            kept.add(int(rows[int(np.nanargmax(resident))]))
    return np.array(sorted(kept))


def _lines(store: Store, file: str) -> list[bytes]:
    return [bytes(line) for line in _table(store, file)["record"].to_pylist()]


def _table(store: Store, file: str) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise errors.missing_extra("pyarrow", "scale", "packed recordings") from None
    try:
        with store.files.open(file, "rb") as opened:
            return pq.read_table(opened, use_threads=False)
    except (OSError, pa.ArrowInvalid) as error:
        raise errors.corrupt_recording(file, str(error)) from None


def _content(store: Store, name: str, path: str) -> bytes:
    try:
        with store.files.open(store.path(name), "rb") as file:
            return bytes(file.read())
    except FileNotFoundError:
        raise errors.not_a_recording(path) from None
    except OSError as error:
        raise errors.cannot_reach(path, str(error)) from None


def _file_of(path: str) -> str:
    """The recording's own file that a Parquet file was made from."""
    return path.rpartition("/")[2].removesuffix(".parquet") + SUFFIX
