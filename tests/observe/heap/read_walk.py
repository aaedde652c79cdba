"""Reads what a walker wrote, for tests: plain dicts, no NumPy."""

from __future__ import annotations

import importlib.util
import os
import struct
import sys
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
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


@dataclass(frozen=True)
class Reference:
    target: int
    role: EdgeRole
    name: str
    shortcut: bool


@dataclass(frozen=True)
class Object:
    address: int
    type: int
    bytes: int
    flags: int
    count: int
    references: list[Reference]

    def to(self, thing: object) -> list[Reference]:
        return [one for one in self.references if one.target == id(thing)]

    def role_of(self, thing: object) -> tuple[EdgeRole, str]:
        (only,) = self.to(thing)
        return only.role, only.name

    def targets(self) -> Counter[int]:
        return Counter(one.target for one in self.references)


class Objects(Mapping[int, Object]):
    """By address. An object is read when it is asked for: a heap has many."""

    def __init__(self, records: bytes, edges: bytes, names: dict[int, str]) -> None:
        self._records = memoryview(records).cast("Q")
        self._edges = memoryview(edges).cast("Q")
        self._names = names
        self._places: dict[int, int] = {}
        self._starts = array("Q")
        at = 0
        for place in range(0, len(self._records), 4):
            address, _, word, counts = self._records[place : place + 4]
            self._places[address] = place
            self._starts.append(at)
            at += (counts >> 32) * (2 if word & LABELLED else 1)
        assert len(self._places) == len(self._starts), "an object is written once"
        assert at == len(self._edges), "every edge belongs to an object"

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __contains__(self, address: object) -> bool:
        return address in self._places

    def __getitem__(self, address: int) -> Object:
        place = self._places[address]
        _, kind, word, counts = self._records[place : place + 4]
        step = 2 if word & LABELLED else 1
        start = self._starts[place // 4]
        references = [
            _reference(self._edges[at], self._edges[at + 1] if step == 2 else 0, self._names)
            for at in range(start, start + (counts >> 32) * step, step)
        ]
        return Object(
            address, kind, word & SIZE_MASK, word & ~SIZE_MASK, counts & 0xFFFFFFFF, references
        )


@dataclass
class Written:
    """A snapshot as a walker wrote it."""

    objects: Objects
    names: dict[int, str]
    types: dict[int, tuple[str, str, tuple[int, ...], int, int]]
    """Module, qualified name, mro, flags, basic size."""
    arrays: dict[int, tuple[int, ...]]
    result: Any
    raw: bytes

    def of(self, thing: object) -> Object:
        return self.objects[id(thing)]


def load_walker() -> Any:
    """The extension; another build of it for tests under a sanitizer."""
    if folder := os.environ.get("LEAKSCOPE_WALKER_FROM"):
        (path,) = Path(folder).rglob("_walker*.so")
        spec = importlib.util.spec_from_file_location("leakscope.observe.heap._walker", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["leakscope.observe.heap._walker"] = module
        spec.loader.exec_module(module)
    return importlib.import_module("leakscope.observe.heap._walker")


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
    objects = Objects(chunks.get("objects", b""), chunks.get("edges", b""), names)
    arrays = _arrays(chunks.get("arrays", b""))
    return Written(
        objects, names, _types(chunks.get("types", b"")), arrays, result, path.read_bytes()
    )


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
