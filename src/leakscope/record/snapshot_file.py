"""The heap snapshot file: names, types, sizes and addresses, never a value of the program.

`docs/recording-format.md` describes it field by field. The walker writes "objects", "edges",
"names", "types" and "arrays"; the rest of the recorder adds "meta" and "end". Nothing here needs
NumPy: this module is loaded in the watched program too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path

import msgspec

MAGIC = b"LSHEAP01"
FOLDER = "heap"
"""Of a recording: where its snapshot files are."""

LABELLED, TRACKED, NAMESPACE, CLASS, MODULE, IMMORTAL = (
    1 << bit for bit in (63, 62, 61, 60, 59, 58)
)
"""Flags in the third word of an object."""

SIZE_MASK = (1 << 48) - 1
SHORTCUT = 1 << 55
"""Flag of a label: the reference also goes through another object, so it is not counted again."""

ROLE_SHIFT = 56
_HEADER = struct.Struct("<8sQ")


class EdgeRole(IntEnum):
    """How one object refers to another."""

    ITEM = 0
    KEY = 1
    TYPE = 2
    NAMESPACE = 3
    ATTRIBUTE = 4
    NAME = 5
    CELL = 6
    CLOSURE = 7
    CLOSURE_TUPLE = 8
    DEFAULT = 9
    GLOBALS = 10
    CODE = 11
    SELF = 12
    FUNCTION = 13
    LOCAL = 14
    TRACEBACK = 15
    FRAME = 16
    BACK = 17
    CONTEXT = 18
    CAUSE = 19
    ARGS = 20
    BASE = 21
    ELEMENT = 22
    CLASS_LINK = 23
    CALLBACK = 24
    # Of frameworks (extra edges):
    STORAGE = 32
    GRAD = 33
    GRAD_FN = 34
    NEXT = 35
    SAVED = 36
    VARIABLE = 37
    VIEW_BASE = 38
    HOOK = 39


class ModuleRoot(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A loaded module: the address of its namespace dict."""

    address: int
    name: str
    file: str = ""


class LocalRoot(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A local variable of a running function."""

    address: int
    name: str
    function: str
    """Qualified name."""
    file: str
    line: int
    """Where the function is at the moment."""
    thread: str = ""
    depth: int = 0
    """Functions below it on the stack; 0 is the outermost."""
    is_argument: bool = False
    is_free: bool = False


class OtherRoot(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Anything else that is alive by itself: a thread, the storage of thread-local variables."""

    address: int
    via: str
    """As a reader would say it: `thread Worker-1`."""
    kind: str
    name: str = ""


class DType(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A NumPy dtype, by the address that arrays refer to it by."""

    address: int
    item_bytes: int
    name: str


class ExtraNode(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A thing of a framework that is no object of the collector: a storage, an autograd node."""

    address: int
    """Unique in the snapshot; where an object has this address too, that is the same thing."""
    type: str
    bytes: int
    device: str = ""
    """`cuda:0`; empty for the host's memory."""
    part: str = "python"
    """tensors, saved, nodes, arrays, python, shared memory: what its bytes count as."""


class ExtraEdge(msgspec.Struct, frozen=True, gc=False, array_like=True):
    source: int
    target: int
    role: int
    name: str = ""


class SnapshotMeta(msgspec.Struct, frozen=True, gc=False):
    """What the Python side of the recorder knows about a snapshot."""

    process: str
    number: int
    step: int | None
    source: str
    """Whose steps `step` counts."""
    python: str
    walker: str
    """`c`, or `python` for the slower twin."""
    modules: tuple[ModuleRoot, ...] = ()
    locals: tuple[LocalRoot, ...] = ()
    others: tuple[OtherRoot, ...] = ()
    dtypes: tuple[DType, ...] = ()
    extra_nodes: tuple[ExtraNode, ...] = ()
    extra_edges: tuple[ExtraEdge, ...] = ()
    described: dict[int, str] = {}
    """By address: `Tensor [64, 512] float32, grad_fn MeanBackward0`."""
    limits: dict[int, int] = {}
    """By address: the most entries that a deque or an lru_cache can have."""
    sites: dict[int, int] = {}
    """By address, of objects made in the tracing window: index in `stacks`."""
    stacks: tuple[tuple[tuple[str, int, str], ...], ...] = ()
    """(file, line, function), innermost first."""
    code: dict[int, tuple[str, str, int]] = {}
    """By address of a code object: qualified name, file, first line."""
    skipped: dict[str, str] = {}
    """What could not be asked at this moment, and why."""


def write_chunk(tag: str, payload: bytes) -> bytes:
    """One chunk as it stands in the file."""
    return _HEADER.pack(tag.encode(), len(payload)) + payload + bytes(-len(payload) % 8)


def read_chunks(path: Path) -> dict[str, list[memoryview]]:
    """The payloads of a complete snapshot by tag; empty if it was cut short."""
    data = memoryview(path.read_bytes())
    if bytes(data[:8]) != MAGIC:
        return {}
    found: dict[str, list[memoryview]] = {}
    for tag, payload in _chunks(data):
        found.setdefault(tag, []).append(payload)
    return found if "end" in found else {}


def _chunks(data: memoryview) -> Iterator[tuple[str, memoryview]]:
    at = len(MAGIC)
    while at + _HEADER.size <= len(data):
        tag, length = _HEADER.unpack_from(data, at)
        begin = at + _HEADER.size
        if begin + length > len(data):
            return
        yield tag.rstrip(b"\0").decode(), data[begin : begin + length]
        at = begin + length + -length % 8
