"""Reads what a walker wrote, for tests: plain dicts, no NumPy."""

from __future__ import annotations

import os
import struct
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakscope.record.snapshot_file import (
    LABELLED,
    MAGIC,
    ROLE_SHIFT,
    SHORTCUT,
    SIZE_MASK,
    EdgeRole,
    read_chunks,
    write_chunk,
)

POINTER_MASK = (1 << 48) - 1
Edges = tuple[Any, dict[int, str]]
"""Words, and names by their pointers."""


@dataclass(frozen=True)
class Reference:
    target: int
    role: EdgeRole
    name: str
    shortcut: bool


class Object:
    """An object as it was written. Its references are read when they are asked for."""

    __slots__ = ("_at", "_in", "_n", "address", "bytes", "count", "flags", "type")

    def __init__(self, record: tuple[int, int, int, int], at: int, within: Edges) -> None:
        self.address, self.type = record[0], record[1]
        self.bytes, self.flags = record[2] & SIZE_MASK, record[2] & ~SIZE_MASK
        self.count, self._n = record[3] & 0xFFFFFFFF, record[3] >> 32
        self._at, self._in = at, within

    @property
    def references(self) -> list[Reference]:
        words, names = self._in
        step = 2 if self.flags & LABELLED else 1
        found = []
        for at in range(self._at, self._at + self._n * step, step):
            label = words[at + 1] if step == 2 else 0
            found.append(_reference(words[at], label, names))
        return found

    def to(self, thing: object) -> list[Reference]:
        return [one for one in self.references if one.target == id(thing)]

    def role_of(self, thing: object) -> tuple[EdgeRole, str]:
        (only,) = self.to(thing)
        return only.role, only.name

    def targets(self) -> Counter[int]:
        return Counter(one.target for one in self.references)


@dataclass
class Written:
    """A snapshot as a walker wrote it."""

    objects: dict[int, Object]
    names: dict[int, str]
    types: dict[int, tuple[str, str, tuple[int, ...], int, int]]
    """Module, qualified name, mro, flags, basic size."""
    arrays: dict[int, tuple[int, ...]]
    result: Any
    raw: bytes

    def of(self, thing: object) -> Object:
        return self.objects[id(thing)]


def walk_with(
    walk: Any, extra: list[Any] | None = None, wanted: tuple[type, ...] = (), ndarray: Any = None
) -> Written:
    """Let a walker write a file and read it back."""
    held = [] if extra is None else extra
    fd, path = tempfile.mkstemp()
    try:
        os.write(fd, MAGIC)
        result = walk(fd, held, wanted, ndarray)
        os.write(fd, write_chunk("end", b""))
        return read_written(Path(path), result)
    finally:
        os.close(fd)
        os.unlink(path)


def read_written(path: Path, result: Any) -> Written:
    chunks = {tag: b"".join(payloads) for tag, payloads in read_chunks(path).items()}
    names = _names(chunks.get("names", b""))
    objects = _objects(chunks.get("objects", b""), chunks.get("edges", b""), names)
    arrays = _arrays(chunks.get("arrays", b""))
    return Written(
        objects, names, _types(chunks.get("types", b"")), arrays, result, path.read_bytes()
    )


def _objects(records: bytes, edges: bytes, names: dict[int, str]) -> dict[int, Object]:
    found: dict[int, Object] = {}
    words = memoryview(edges).cast("Q")
    at = 0
    for record in struct.iter_unpack("<4Q", records):
        found[record[0]] = Object(record, at, (words, names))
        at += (record[3] >> 32) * (2 if record[2] & LABELLED else 1)
    assert len(found) == len(records) // 32, "an object is written once"
    assert at == len(words), "every edge belongs to an object"
    return found


def _reference(target: int, label: int, names: dict[int, str]) -> Reference:
    pointer = label & POINTER_MASK
    name = names[pointer] if pointer else ""
    return Reference(target, EdgeRole(label >> ROLE_SHIFT), name, bool(label & SHORTCUT))


def _names(data: bytes) -> dict[int, str]:
    found = {}
    at = 0
    while at < len(data):
        pointer, length = struct.unpack_from("<QI", data, at)
        at += 12
        found[pointer & POINTER_MASK] = data[at : at + length].decode()
        at += length
    return found


def _types(data: bytes) -> dict[int, tuple[str, str, tuple[int, ...], int, int]]:
    found = {}
    at = 0

    def text() -> str:
        nonlocal at
        (length,) = struct.unpack_from("<I", data, at)
        at += 4 + length
        return data[at - length : at].decode()

    while at < len(data):
        address, flags, basic = struct.unpack_from("<QQQ", data, at)
        at += 24
        qualified, module = text(), text()
        (n,) = struct.unpack_from("<I", data, at)
        mro = struct.unpack_from(f"<{n}Q", data, at + 4)
        at += 4 + 8 * n
        assert address not in found, "a type is written once"
        found[address] = (module, qualified, mro, flags, basic)
    return found


def _arrays(data: bytes) -> dict[int, tuple[int, ...]]:
    words = struct.unpack(f"<{len(data) // 8}Q", data)
    found = {}
    at = 0
    while at < len(words):
        end = at + 6 + words[at + 5]
        found[words[at]] = words[at + 1 : end]
        at = end
    return found
