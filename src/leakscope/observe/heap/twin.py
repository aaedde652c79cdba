"""The heap walk in Python, for where the extension `_walker` is not installed.

It writes the same format from the same start: all objects that the collector tracks, and what they
lead to. It is slower by a factor of about fifty, and it differs in five ways, none of which changes
who refers to whom:

- Other threads may run in between, so a snapshot is not quite one moment.
- An inline attribute has a name only if a method of its class mentions it. Reading `__dict__` would
  give all names, but makes a dict in each instance.
- Sizes of instances leave out the block of their inline attributes.
- Local variables of generators and frames have no names, and neither have the `__dict__` of a
  function and, unless one of its names is known, that of an instance.
- The weak references of a class to its subclasses are not seen, nor the names of the local
  variables of code that was made at run time.
"""

from __future__ import annotations

import gc
import os
import struct
import sys
from collections.abc import Iterable, Iterator
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CellType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    TracebackType,
)
from typing import Any
from weakref import CallableProxyType, ProxyType, ReferenceType

from leakscope.record.snapshot_file import (
    CLASS,
    IMMORTAL,
    LABELLED,
    MODULE,
    NAMESPACE,
    ROLE_SHIFT,
    SHORTCUT,
    SIZE_MASK,
    TRACKED,
    EdgeRole,
    write_chunk,
)

BUFFER_BYTES = 256 << 10
"""A chunk is written when it is this long."""
LONGEST_NAME = 100
"""Longer names are not written; in characters."""
LONGEST_TYPE_NAME = 400
"""Names of classes and modules are cut here; in bytes of UTF-8."""
INSTANCES_ASKED = 16
"""Instances of a class that are asked for every name its methods mention; later ones are asked for
those that one of these had."""

_HEAP_TYPE, _HAVE_GC, _MANAGED_DICT, _MANAGED_WEAKREF = 1 << 9, 1 << 14, 1 << 4, 1 << 3
_IMMORTAL_COUNT = 1 << 30
"""From 3.12 on; a count above it says that the object is never freed."""
_POINTER_MASK = (1 << 48) - 1

# Classes are asked through the slots of `type`: a metaclass may answer for itself.
_dict_of: Any = type.__dict__["__dict__"]
_mro_of: Any = type.__dict__["__mro__"]
_bases_of: Any = type.__dict__["__bases__"]
_base_of: Any = type.__dict__["__base__"]
_flags_of: Any = type.__dict__["__flags__"]
_basic_of: Any = type.__dict__["__basicsize__"]
_module_of: Any = type.__dict__["__module__"]
_qualname_of: Any = type.__dict__["__qualname__"]
_dict_of_module: Any = _dict_of.__get__(ModuleType)["__dict__"]
_of_exception = {
    name: BaseException.__dict__[name]
    for name in ("args", "__traceback__", "__cause__", "__context__")
}
_ask: Any = object.__getattribute__

_ASKED = {
    ("_io", "BytesIO"),
    ("_io", "BufferedReader"),
    ("_io", "BufferedWriter"),
    ("_io", "BufferedRandom"),
    ("array", "array"),
    ("collections", "deque"),
    ("collections", "OrderedDict"),
    ("decimal", "Decimal"),
    ("_pickle", "Pickler"),
    ("_pickle", "Unpickler"),
    ("xml.etree.ElementTree", "Element"),
    ("itertools", "product"),
    ("itertools", "permutations"),
    ("itertools", "combinations"),
    ("itertools", "combinations_with_replacement"),
}
"""Types whose `__sizeof__` knows memory that is not seen otherwise; see `_walker.c`."""
_SIZED: tuple[type, ...] = (
    list,
    dict,
    set,
    frozenset,
    str,
    int,
    bytearray,
    type,
    CodeType,
    GeneratorType,
    CoroutineType,
    AsyncGeneratorType,
    FrameType,
)
"""Built-in types with a `__sizeof__` of their own."""
_WITH_LENGTH = {
    ("builtins", "memoryview"),
    ("builtins", "hamt_bitmap_node"),
    ("builtins", "hamt_collision_node"),
    ("re", "Match"),
    ("re", "Pattern"),
}
"""Types whose items stand behind the object, besides tuple and bytes: what `object` counts."""

_CODE_PARTS = (
    "co_consts",
    "co_names",
    "co_exceptiontable",
    "co_filename",
    "co_name",
    "co_qualname",
    "co_linetable",
)
_GENERATOR_CODE = {
    GeneratorType: "gi_code",
    CoroutineType: "cr_code",
    AsyncGeneratorType: "ag_code",
}

Edge = tuple[Any, int]
"""A target, and its label."""


class Walked(tuple[int, int, int, list[Any], tuple[Any, ...]]):
    """Objects, references, bytes written, instances of the wanted classes, dtypes of arrays."""

    sites: dict[int, int]
    """Number of the stack that an object was made at, by address."""
    stacks: dict[tuple[tuple[str, int], ...], int]
    """Numbers by stack, as tracemalloc has them."""

    shallow_bytes: int


def walk(
    fd: int,
    extra: list[Any],
    wanted: tuple[type, ...],
    ndarray: type | None,
    with_sites: bool = False,
) -> Walked:
    """Append every object to a snapshot file. As `_walker.walk`, without allocation sites."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        start = gc.get_objects()  # first of all: nothing of this walk is in it
        return _Walk(fd, extra, wanted, ndarray).run(start)
    finally:
        if was_on:
            gc.enable()


def thread_dicts() -> list[Any]:
    """Where threads keep their thread-local variables: Python cannot say."""
    return []


def check_ndarray(array: Any, data_pointer: int, nd: int, base: Any, dtype: Any) -> bool:
    """Arrays are read through their attributes here."""
    return True


class _Kind:
    """What the walk needs to know of a type. Holds no reference to it."""

    __slots__ = (
        "asked",
        "flags",
        "front",
        "is_array",
        "is_gc",
        "is_heap_type",
        "is_managed",
        "is_plain",
        "is_wanted",
        "members",
        "names",
        "own_slots",
        "shape",
        "size",
        "sizeof",
    )

    def __init__(self) -> None:
        self.flags = 0
        self.front = 0
        self.is_array = self.is_gc = self.is_wanted = False
        self.is_heap_type = self.is_managed = self.is_plain = False
        self.members: list[tuple[Any, str]] = []
        self.own_slots: list[tuple[Any, str]] = []
        self.names: dict[str, int] = {}
        """Of inline attributes; how many of the instances that were asked have it."""
        self.asked = 0
        self.shape = ""
        self.size = 0
        self.sizeof: Any = None


class _Out:
    """The chunks of one tag."""

    def __init__(self, fd: int, tag: str) -> None:
        self._fd = fd
        self._tag = tag
        self._parts = bytearray()
        self.written = 0

    def put(self, data: bytes) -> None:
        self._parts += data
        if len(self._parts) >= BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        if not self._parts:
            return
        view = memoryview(write_chunk(self._tag, bytes(self._parts)))
        self.written += len(view)
        while view:
            view = view[os.write(self._fd, view) :]
        self._parts.clear()


class _Counting:
    """Counts as `_Walk` does, to learn how many references a walk itself has to an object."""

    def references(self) -> int:
        return self._take([object()].pop())

    def _take(self, thing: Any) -> int:
        return self._write(thing, object)

    def _write(self, thing: Any, kind: type) -> int:
        return sys.getrefcount(thing)


class _Walk:
    def __init__(
        self, fd: int, extra: list[Any], wanted: tuple[type, ...], ndarray: type | None
    ) -> None:
        self._extra = extra
        self._wanted = frozenset(id(one) for one in wanted)
        self._ndarray = ndarray
        self._objects = _Out(fd, "objects")
        self._edges = _Out(fd, "edges")
        self._names = _Out(fd, "names")
        self._types = _Out(fd, "types")
        self._arrays = _Out(fd, "arrays")
        self._kinds: dict[int, _Kind] = {}
        self._seen: set[int] = {id(extra)}
        self._namespaces: set[int] = set()
        self._named: dict[int, int] = {}
        self._kept: list[str] = []
        self._lent: dict[int, int] = {}
        self._waiting: list[Any] = []
        self._dicts: list[Any] = []
        self._found: list[Any] = []
        self._dtypes: dict[int, Any] = {}
        self._own_references = _Counting().references()
        self._n_objects = self._n_edges = self._n_bytes = 0

    def run(self, start: list[Any]) -> Walked:
        for one in self._extra:
            self._lent[id(one)] = self._lent.get(id(one), 0) + 1
        self._seen.update(id(one) for one in start)
        self._waiting = start
        for one in (*self._extra, sys.modules):
            self._reach(one)
        del one
        self._take_waiting()
        while self._dicts:
            self._take_dict(self._dicts.pop())
            self._take_waiting()
        outs = (self._objects, self._edges, self._names, self._types, self._arrays)
        for out in outs:
            out.flush()
        written = sum(out.written for out in outs)
        dtypes = tuple(self._dtypes.values())
        walked = Walked((self._n_objects, self._n_edges, written, self._found, dtypes))
        walked.sites, walked.stacks = {}, {}
        walked.shallow_bytes = self._n_bytes
        return walked

    def _take_waiting(self) -> None:
        while self._waiting:
            self._take(self._waiting.pop())

    def _take(self, thing: Any) -> None:
        """Write an object; a mapping later, when all whose namespace it could be are known."""
        kind = type(thing)
        if (self._kinds.get(id(kind)) or self._learn(kind)).shape == "mapping":
            self._dicts.append(thing)
        else:
            self._write(thing, kind)

    def _take_dict(self, thing: Any) -> None:
        self._write(thing, type(thing))

    def _reach(self, thing: Any) -> None:
        if id(thing) not in self._seen:
            self._seen.add(id(thing))
            self._waiting.append(thing)

    def _write(self, thing: Any, kind: type) -> None:
        if thing is self._extra:
            return
        address = id(thing)
        count = sys.getrefcount(thing)
        immortal = sys.version_info >= (3, 12) and count > _IMMORTAL_COUNT
        if not immortal:
            count -= self._own_references + self._lent.get(address, 0)
        known = self._kinds.get(id(kind)) or self._learn(kind)
        namespace = address in self._namespaces
        word = min(self._size(thing, known), SIZE_MASK) | known.flags
        self._n_bytes += word & SIZE_MASK
        if gc.is_tracked(thing):
            word |= TRACKED
        if namespace:
            word |= NAMESPACE
        if immortal:
            word |= IMMORTAL
        n_edges = 0
        if known.is_plain:
            n_edges = self._put_items(gc.get_referents(thing)) if known.is_gc else 0
        else:
            edges = self._references(thing, known, namespace)
            if any(label for _, label in edges):
                word |= LABELLED
            n_edges = self._put_edges(edges, bool(word & LABELLED))
        count = max(min(count, 0xFFFFFFFF), 0)
        self._objects.put(struct.pack("<4Q", address, id(kind), word, count | n_edges << 32))
        self._n_objects += 1
        self._n_edges += n_edges
        if known.is_wanted:
            self._found.append(thing)

    def _put_items(self, targets: list[Any]) -> int:
        """Write references that have no labels; returns how many."""
        extra = self._extra
        addresses = [id(target) for target in targets if target is not extra]
        self._edges.put(struct.pack(f"<{len(addresses)}Q", *addresses))
        for target in targets:
            self._reach(target)
        return len(addresses)

    def _put_edges(self, edges: list[Edge], labelled: bool) -> int:
        words: list[int] = []
        for target, label in edges:
            words.append(id(target))
            if labelled:
                words.append(label)
            self._reach(target)
        self._edges.put(struct.pack(f"<{len(words)}Q", *words))
        return len(edges)

    # ── names ──

    def _label(self, role: EdgeRole, name: object = None, *, shortcut: bool = False) -> int:
        label = int(role) << ROLE_SHIFT | (SHORTCUT if shortcut else 0)
        return label if name is None else label | self._name(name)

    def _name(self, name: object) -> int:
        """The pointer of a name, which is written once; 0 if it must not be written."""
        if type(name) is not str or not _may_be_written(name):
            return 0
        pointer = self._named.get(id(name))
        if pointer is None:
            pointer = self._named[id(name)] = id(name) & _POINTER_MASK
            text = name.encode("utf-8", "replace")
            self._names.put(struct.pack("<QI", id(name), len(text)) + text)
            self._kept.append(name)
        return pointer

    # ── types ──

    def _learn(self, kind: type) -> _Kind:
        known = self._kinds[id(kind)] = _Kind()
        mro = _mro_of.__get__(kind) or ()
        flags = _flags_of.__get__(kind)
        self._write_type(kind, mro, flags)
        self._reach(kind)
        known.is_gc = bool(flags & _HAVE_GC)
        known.is_heap_type = bool(flags & _HEAP_TYPE)
        known.is_managed = bool(flags & _MANAGED_DICT)
        known.front = _bytes_in_front(flags)
        known.is_wanted = any(id(one) in self._wanted for one in mro)
        known.is_array = self._ndarray is not None and any(one is self._ndarray for one in mro)
        known.shape = _shape_of(kind, mro)
        if known.shape == "class":
            known.flags |= CLASS
        if known.shape == "module":
            known.flags |= MODULE
        known.size = _basic_of.__get__(kind)
        known.sizeof = _sizeof(kind)
        members = list(_members_of(kind))
        if known.is_gc:
            known.members = members
        elif known.is_heap_type:
            known.own_slots = members
        if known.is_managed:
            known.names = dict.fromkeys(_mentioned_names(mro), 0)
        known.is_plain = not (
            known.shape or known.is_array or known.members or known.own_slots or known.is_heap_type
        )
        for one in mro:
            if id(one) not in self._kinds:
                self._learn(one)
        return known

    def _write_type(self, kind: type, mro: tuple[type, ...], flags: int) -> None:
        qualified = _type_text(_qualname_of.__get__(kind))
        module = _type_text(_module_of.__get__(kind))
        self._types.put(
            struct.pack("<QQQ", id(kind), flags, _basic_of.__get__(kind))
            + struct.pack("<I", len(qualified))
            + qualified
            + struct.pack("<I", len(module))
            + module
            + struct.pack(f"<I{len(mro)}Q", len(mro), *(id(one) for one in mro))
        )

    # ── sizes ──

    def _size(self, thing: Any, known: _Kind) -> int:
        size: int = known.size if known.sizeof is None else known.sizeof(thing)
        front = known.front
        if known.shape == "class" and sys.version_info >= (3, 13):
            front = front if _flags_of.__get__(thing) & _HEAP_TYPE else 0
        return size + front

    # ── references ──

    def _references(self, thing: Any, known: _Kind, namespace: bool) -> list[Edge]:
        if type(thing) is dict:
            return self._of_dict(thing, gc.get_referents(thing), namespace)
        visited = _visited(thing, known)
        edges = self._match(visited, self._candidates(thing, known, visited))
        if known.shape == "mapping":
            edges = self._of_mapping(thing, edges, namespace)
        edges += self._hidden(thing, known)
        return [edge for edge in edges if edge[0] is not self._extra]

    def _match(self, visited: list[Any], candidates: list[Edge]) -> list[Edge]:
        """Give each visited reference the label of the first candidate left for its target."""
        by_target: dict[int, list[int]] = {}
        for target, label in candidates:
            if target is not None:  # None may stand for what is not set
                by_target.setdefault(id(target), []).append(label)
        edges = []
        for target in visited:
            labels = by_target.get(id(target))
            edges.append((target, labels.pop(0) if labels else 0))
        return edges

    def _candidates(self, thing: Any, known: _Kind, visited: list[Any]) -> list[Edge]:
        """What the references of an object could be."""
        found = list(self._of_shape(thing, known.shape))
        for descriptor, name in known.members:
            label = self._member_label(name, known)
            values = _value_of(descriptor, thing)
            found += [(value, label) for value in values]
            if name == "__dict__":
                self._namespaces.update(id(value) for value in values if value is not None)
        if known.is_managed:
            found += self._attributes(thing, known, visited)
        if known.is_heap_type:
            found.append((type(thing), self._label(EdgeRole.TYPE)))
        return found

    def _member_label(self, name: str, known: _Kind) -> int:
        if known.shape == "partial" and name == "func":
            return self._label(EdgeRole.FUNCTION)
        if name == "__dict__":
            return self._label(EdgeRole.NAMESPACE)
        return self._label(EdgeRole.ATTRIBUTE, name)

    def _of_shape(self, thing: Any, shape: str) -> Iterator[Edge]:
        if shape == "function":
            yield thing.__code__, self._label(EdgeRole.CODE)
            yield thing.__globals__, self._label(EdgeRole.GLOBALS)
            yield thing.__closure__, self._label(EdgeRole.CLOSURE_TUPLE)
        elif shape == "cell":
            for contents in _contents_of(thing):
                yield contents, self._label(EdgeRole.CELL)
        elif shape == "method":
            yield thing.__func__, self._label(EdgeRole.FUNCTION)
            yield thing.__self__, self._label(EdgeRole.SELF)
        elif shape == "builtin":
            yield thing.__self__, self._label(EdgeRole.SELF)
        elif shape == "class":
            yield from self._of_class(thing, EdgeRole.NAMESPACE)
        elif shape == "module":
            namespace = _dict_of_module.__get__(thing)
            self._namespaces.add(id(namespace))
            yield namespace, self._label(EdgeRole.NAMESPACE)
        elif shape == "exception":
            yield from self._of_exception(thing)
        elif shape == "traceback":
            yield thing.tb_next, self._label(EdgeRole.BACK)
            yield thing.tb_frame, self._label(EdgeRole.FRAME)
        elif shape == "weak reference":
            yield thing.__callback__, self._label(EdgeRole.CALLBACK)
        elif shape == "generator":
            code = getattr(thing, _GENERATOR_CODE[type(thing)])
            yield code, self._label(EdgeRole.CODE)
            yield code, self._label(EdgeRole.CODE)  # its frame has it too

    def _of_class(self, kind: type, role: EdgeRole) -> Iterator[Edge]:
        if not _mro_of.__get__(kind):
            return  # not made ready: asking it for its bases would crash
        for namespace in gc.get_referents(_dict_of.__get__(kind)):
            self._namespaces.add(id(namespace))
            yield namespace, self._label(role)
        yield _mro_of.__get__(kind), self._label(EdgeRole.CLASS_LINK)
        yield _bases_of.__get__(kind), self._label(EdgeRole.CLASS_LINK)
        if _flags_of.__get__(kind) & _HEAP_TYPE:
            yield _base_of.__get__(kind), self._label(EdgeRole.CLASS_LINK)

    def _of_exception(self, thing: Any) -> Iterator[Edge]:
        roles = (EdgeRole.ARGS, EdgeRole.TRACEBACK, EdgeRole.CAUSE, EdgeRole.CONTEXT)
        for name, role in zip(_of_exception, roles, strict=True):
            yield _of_exception[name].__get__(thing), self._label(role)

    def _attributes(self, thing: Any, known: _Kind, visited: list[Any]) -> list[Edge]:
        """The attributes whose names are known; or the `__dict__` that they are in."""
        values = list(_attribute_values(thing, known))
        shown = {id(target) for target in visited}
        for target in visited:
            inside = (
                type(target) is dict
                and values
                and all(target.get(name) is value for name, value in values)
            )
            if inside:
                self._namespaces.add(id(target))
                return [(target, self._label(EdgeRole.NAMESPACE))]
        return [
            (value, self._label(EdgeRole.ATTRIBUTE, name))
            for name, value in values
            if id(value) in shown
        ]

    def _of_dict(self, thing: Any, visited: list[Any], namespace: bool) -> list[Edge]:
        """The collector is shown the keys of a dict, unless all that it ever had were strings."""
        entries = list(dict.items(thing))
        if not visited:
            return []
        with_keys = len(visited) == 2 * len(entries)
        edges = []
        for key, value in entries:
            edges.append((value, self._label(EdgeRole.NAME, key) if namespace else 0))
            if with_keys:
                edges.append((key, self._label(EdgeRole.KEY)))
            elif not namespace:
                edges.append((key, self._label(EdgeRole.KEY, shortcut=True)))
        return edges

    def _of_mapping(self, thing: Any, edges: list[Edge], namespace: bool) -> list[Edge]:
        """Label the entries of a subclass of dict, which stand together in what it shows."""
        entries = list(dict.items(thing))
        targets = [id(target) for target, _ in edges]
        for step in (2, 1):
            wanted = [id(one) for k, v in entries for one in ((v,) if step == 1 else (v, k))]
            for start in range(len(targets) - len(wanted) + 1 if wanted else 0):
                if targets[start] != wanted[0] or targets[start : start + len(wanted)] != wanted:
                    continue
                run = self._of_dict(thing, [None] * len(wanted), namespace)
                return edges[:start] + run + edges[start + len(wanted) :]
        return edges

    def _hidden(self, thing: Any, known: _Kind) -> list[Edge]:
        """References that the collector is not shown, and shortcuts with a name."""
        found: list[Edge] = []
        for descriptor, name in known.own_slots:
            label = self._label(EdgeRole.ATTRIBUTE, name)
            found += [(value, label) for value in _value_of(descriptor, thing)]
        if known.shape == "function":
            found += self._shortcuts(thing)
        elif known.shape == "class" and not _flags_of.__get__(thing) & _HEAP_TYPE:
            found += self._of_class(thing, EdgeRole.NAMESPACE)
        elif known.shape == "code" and thing.co_filename.startswith("<"):
            found += [(getattr(thing, name), 0) for name in _CODE_PARTS]
        if known.is_array:
            found += self._of_array(thing)
        return found

    def _shortcuts(self, function: Any) -> Iterator[Edge]:
        code = function.__code__
        for cell, name in zip(function.__closure__ or (), code.co_freevars, strict=False):
            yield cell, self._label(EdgeRole.CLOSURE, name, shortcut=True)
        defaults = function.__defaults__ or ()
        names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
        for value, name in zip(defaults, names, strict=False):
            yield value, self._label(EdgeRole.DEFAULT, name, shortcut=True)
        only_by_name = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
        for key, value in list((function.__kwdefaults__ or {}).items()):
            name = next((one for one in only_by_name if one is key), None)
            yield value, self._label(EdgeRole.DEFAULT, name, shortcut=True)

    def _of_array(self, array: Any) -> Iterator[Edge]:
        of: Any = _dict_of.__get__(self._ndarray)
        data = of["__array_interface__"].__get__(array)["data"][0]
        shape, base = of["shape"].__get__(array), of["base"].__get__(array)
        dtype, flags = of["dtype"].__get__(array), of["flags"].__get__(array)
        self._dtypes[id(dtype)] = dtype
        head = (id(array), data, 0 if base is None else id(base), id(dtype), flags.num, len(shape))
        self._arrays.put(struct.pack(f"<{6 + len(shape)}Q", *head, *shape))
        if base is not None:
            yield base, self._label(EdgeRole.BASE)
        if dtype.kind == "O" and flags.c_contiguous and flags.owndata:
            for element in of["tolist"](of["ravel"](array)):
                yield element, self._label(EdgeRole.ELEMENT)


def _may_be_written(name: str) -> bool:
    """Identifiers, and names like `<lambda>`, that are not too long. All else could be data."""
    if not 0 < len(name) <= LONGEST_NAME:
        return False
    inner = name[1:-1] if name.isascii() and name[0] == "<" and name[-1] == ">" else name
    return inner.isidentifier()


def _type_text(name: object) -> bytes:
    if type(name) is not str:
        return b""
    text = name.encode("utf-8", "replace")[:LONGEST_TYPE_NAME]
    return text.decode("utf-8", "ignore").encode()


def _bytes_in_front(flags: int) -> int:
    """The header of the collector, and room for a managed dict and weak references."""
    managed = _MANAGED_DICT | (_MANAGED_WEAKREF if sys.version_info >= (3, 12) else 0)
    return (16 if flags & _HAVE_GC else 0) + (16 if flags & managed else 0)


def _shape_of(kind: type, mro: Iterable[type]) -> str:
    exact = {
        FunctionType: "function",
        CellType: "cell",
        MethodType: "method",
        TracebackType: "traceback",
        CodeType: "code",
        GeneratorType: "generator",
        CoroutineType: "generator",
        AsyncGeneratorType: "generator",
        ProxyType: "",
        CallableProxyType: "",
    }
    if kind in exact:
        return exact[kind]
    for one in mro:
        for base, shape in (
            (dict, "mapping"),
            (type, "class"),
            (BaseException, "exception"),
            (BuiltinFunctionType, "builtin"),
            (ModuleType, "module"),
            (ReferenceType, "weak reference"),
        ):
            if one is base:
                return shape
        if _name_of_type(one) == ("functools", "partial"):
            return "partial"
    return ""


def _name_of_type(kind: type) -> tuple[object, object]:
    return _module_of.__get__(kind), _qualname_of.__get__(kind)


def _bases_in_line(kind: type) -> Iterator[type]:
    """The class and what its layout is built on."""
    at: type | None = kind
    while at is not None:
        yield at
        at = _base_of.__get__(at)


def _sizeof(kind: type) -> Any:
    """The `__sizeof__` of CPython's own that is called; None if the basic size is all."""
    for one in _bases_in_line(kind):
        own = _dict_of.__get__(one).get("__sizeof__")
        if type(own) is not MethodDescriptorType or one is object:
            continue
        if any(one is sized for sized in _SIZED) or _name_of_type(one) in _ASKED:
            return own
    in_line = list(_bases_in_line(kind))
    if any(one is tuple or one is bytes for one in in_line) or _name_of_type(kind) in _WITH_LENGTH:
        return object.__sizeof__
    return None


def _members_of(kind: type) -> Iterator[tuple[Any, str]]:
    """Slots and the members of built-in types, those of the class itself first."""
    for one in _bases_in_line(kind):
        for name, value in list(_dict_of.__get__(one).items()):
            if type(value) is MemberDescriptorType:
                yield value, name


def _mentioned_names(mro: Iterable[type]) -> set[str]:
    """Names that methods of a class mention and that are no attributes of the class."""
    names: set[str] = set()
    of_class: set[str] = set()
    for one in mro:
        namespace = _dict_of.__get__(one)
        of_class.update(name for name in namespace if type(name) is str)
        for value in list(namespace.values()):
            if type(value) is FunctionType:
                names.update(value.__code__.co_names)
    return names - of_class


def _value_of(descriptor: Any, thing: Any) -> list[Any]:
    """The value of a member; none if it is not set."""
    try:
        return [descriptor.__get__(thing)]
    except AttributeError:
        return []


def _contents_of(cell: Any) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # it is empty
        return []


def _attribute_values(thing: Any, known: _Kind) -> Iterator[tuple[str, Any]]:
    """Ask an instance for the names its methods mention: neither a descriptor nor a `__getattr__`
    can answer, and no dict is made."""
    first = known.asked < INSTANCES_ASKED
    known.asked += first
    for name in [name for name, had in known.names.items() if first or had]:
        try:
            value = _ask(thing, name)
        except AttributeError:
            continue
        known.names[name] += first
        yield name, value


def _visited(thing: Any, known: _Kind) -> list[Any]:
    """The references that the collector is shown."""
    if known.shape == "module" and sys.version_info >= (3, 12):
        # The module _asyncio shows iterators that it has freed.
        if thing is sys.modules.get("_asyncio"):
            return [_dict_of_module.__get__(thing)]
    return gc.get_referents(thing)
