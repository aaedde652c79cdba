"""Build small heap snapshots by hand: objects, references and roots, written as the walker does."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path

import msgspec

from leakscope.record.snapshot_file import (
    CLASS,
    IMMORTAL,
    LABELLED,
    MAGIC,
    MODULE,
    NAMESPACE,
    ROLE_SHIFT,
    SHORTCUT,
    TRACKED,
    DType,
    EdgeRole,
    ExtraEdge,
    ExtraNode,
    LocalRoot,
    ModuleRoot,
    OtherRoot,
    SnapshotMeta,
    write_chunk,
)

HERE = "/home/user/train.py"
LIBRARY = "/usr/lib/python3.11/site-packages/library.py"
_FIRST_ADDRESS = 0x7F00_0000_0000
_FIRST_NAME = 0x5500_0000_0000
_TYPE_FLAG = 1 << 31
_FLAGS = {"dict": 1 << 29, "list": 1 << 25, "tuple": 1 << 26, "type": _TYPE_FLAG}


class Heap:
    """One snapshot under construction. Objects are numbered by their addresses."""

    def __init__(self) -> None:
        self._next = _FIRST_ADDRESS
        self._objects: dict[int, tuple[int, int]] = {}
        self._edges: dict[int, list[tuple[int, int]]] = {}
        self._more: Counter[int] = Counter()
        self._types: dict[tuple[str, str], int] = {}
        self._mros: dict[int, tuple[int, ...]] = {}
        self._names: dict[str, int] = {}
        self._arrays: list[int] = []
        self._immortal: set[int] = set()
        self.modules: list[ModuleRoot] = []
        self.locals: list[LocalRoot] = []
        self.others: list[OtherRoot] = []
        self.extra_nodes: list[ExtraNode] = []
        self.extra_edges: list[ExtraEdge] = []
        self.described: dict[int, str] = {}
        self.limits: dict[int, int] = {}
        self.code: dict[int, tuple[str, str, int]] = {}
        self.sites: dict[int, int] = {}
        self.stacks: list[tuple[tuple[str, int, str], ...]] = []
        self.module("os", "/usr/lib/python3.11/os.py")

    # ── objects ──

    def type(self, name: str, module: str = "builtins", *, base: int = 0) -> int:
        """The address of a type."""
        address = self._types.get((module, name))
        if address is None:
            address = self._types[module, name] = self._address()
            self._mros[address] = (address, base) if base else (address,)
        return address

    def add(
        self,
        kind: str = "object",
        size: int = 64,
        *,
        module: str = "builtins",
        is_tracked: bool = True,
        flags: int = 0,
    ) -> int:
        """A new object of a type."""
        address = self._address()
        word = size | flags | (TRACKED if is_tracked else 0)
        self._objects[address] = self.type(kind, module), word
        self._edges[address] = []
        return address

    def klass(self, name: str, module: str = "__main__") -> tuple[int, int]:
        """A class as an object, with its namespace."""
        address = self.type(name, module)
        self._objects[address] = self.type("type"), 1000 | TRACKED | CLASS
        self._edges[address] = []
        namespace = self.add("dict", 200, flags=NAMESPACE)
        self.refer(address, namespace, EdgeRole.NAMESPACE)
        return address, namespace

    def array(self, *shape: int, item_bytes: int = 8, owns: bool = True) -> int:
        """A NumPy array."""
        address = self.add("ndarray", 112, module="numpy", is_tracked=False)
        dtype = 0x5600_0000_0000 + item_bytes
        self._arrays += [address, 1, 0, dtype, 4 if owns else 0, len(shape), *shape]
        return address

    def refer(
        self,
        source: int,
        target: int,
        role: EdgeRole = EdgeRole.ITEM,
        name: str = "",
        *,
        is_shortcut: bool = False,
    ) -> int:
        """Make an object refer to another, which is returned."""
        pointer = self._names.setdefault(name, _FIRST_NAME + 16 * len(self._names)) if name else 0
        label = int(role) << ROLE_SHIFT | pointer | (SHORTCUT if is_shortcut else 0)
        self._edges[source].append((target, label))
        return target

    def hold(self, address: int, count: int = 1) -> None:
        """References that are not in the snapshot: native code has them."""
        self._more[address] += count

    def immortal(self, address: int) -> None:
        self._immortal.add(address)

    def instance(self, kind: str, size: int = 64, module: str = "__main__", **values: int) -> int:
        """An instance with attributes."""
        address = self.add(kind, size, module=module)
        for name, value in values.items():
            self.refer(address, value, EdgeRole.ATTRIBUTE, name)
        return address

    def items(self, kind: str, *values: int, size: int = 0) -> int:
        """A container with items."""
        address = self.add(kind, size or 56 + 8 * len(values))
        for value in values:
            self.refer(address, value)
        return address

    # ── roots ──

    def module(self, name: str, file: str = "", **names: int) -> int:
        """A module; the address of its namespace."""
        namespace = self.add("dict", 232, flags=NAMESPACE)
        self.modules.append(ModuleRoot(namespace, name, file))
        for key, value in names.items():
            self.refer(namespace, value, EdgeRole.NAME, key)
        return namespace

    def module_object(self, namespace: int) -> int:
        address = self.add("module", 80, flags=MODULE)
        self.refer(address, namespace, EdgeRole.NAMESPACE)
        return address

    def local(
        self, value: int, name: str, function: str = "main", file: str = HERE, **more: object
    ) -> None:
        fields = {"line": 7, **more}
        root = LocalRoot(value, name, function, file, **fields)  # type: ignore[arg-type]
        self.locals.append(root)

    # ── the file ──

    def write(self, path: Path, *, number: int = 1, step: int = 1) -> Path:
        """Write the snapshot as a file."""
        chunks = [write_chunk(*chunk) for chunk in self._chunks()]
        meta = SnapshotMeta(
            process="1-1",
            number=number,
            step=step,
            source="api",
            python="3.11.7",
            walker="python",
            modules=tuple(self.modules),
            locals=tuple(self.locals),
            others=tuple(self.others),
            dtypes=tuple(
                DType(0x5600_0000_0000 + size, size, f"float{8 * size}") for size in (4, 8)
            ),
            extra_nodes=tuple(self.extra_nodes),
            extra_edges=tuple(self.extra_edges),
            described=self.described,
            limits=self.limits,
            sites=self.sites,
            stacks=tuple(self.stacks),
            code=self.code,
        )
        chunks.append(write_chunk("meta", msgspec.json.encode(meta)))
        path.write_bytes(MAGIC + b"".join(chunks) + write_chunk("end", b""))
        return path

    def _chunks(self) -> list[tuple[str, bytes]]:
        counts: Counter[int] = Counter(self._more)
        for roots in (self.modules, self.locals, self.others):
            counts.update(root.address for root in roots)
        for edges in self._edges.values():
            counts.update(
                target
                for target, label in edges
                if not label & SHORTCUT or label >> ROLE_SHIFT == EdgeRole.KEY
            )
        objects, words = [], []
        for address, (kind, word) in self._objects.items():
            edges = self._edges[address]
            is_labelled = any(label for _, label in edges)
            flags = LABELLED if is_labelled else 0
            flags |= IMMORTAL if address in self._immortal else 0
            objects += [address, kind, word | flags, counts[address] | len(edges) << 32]
            for target, label in edges:
                words += [target, label] if is_labelled else [target]
        names = [
            struct.pack("<QI", at, len(n.encode())) + n.encode() for n, at in self._names.items()
        ]
        types = [self._type_record(*key, at) for key, at in self._types.items()]
        half = len(objects) // 8 * 4  # two chunks, cut at a whole record
        return [
            ("objects", _words(objects[:half])),
            ("edges", _words(words)),
            ("objects", _words(objects[half:])),
            ("names", b"".join(names)),
            ("types", b"".join(types)),
            ("arrays", _words(self._arrays)),
        ]

    def _type_record(self, module: str, name: str, address: int) -> bytes:
        mro = self._mros[address]
        texts = [struct.pack("<I", len(text.encode())) + text.encode() for text in (name, module)]
        head = struct.pack("<QQQ", address, _FLAGS.get(name, 0), 16)
        return head + b"".join(texts) + struct.pack(f"<I{len(mro)}Q", len(mro), *mro)

    def _address(self) -> int:
        self._next += 16
        return self._next


def _words(words: list[int]) -> bytes:
    return struct.pack(f"<{len(words)}Q", *words)
