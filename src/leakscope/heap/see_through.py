"""Leave Python's own parts out of paths: what a programmer writes as one step is one step.

`model.weights` is three objects: the instance, its `__dict__`, the value. A closure's variable goes
through a tuple and a cell. Such parts are *seen through*: their bytes belong to what they are part
of, and what they refer to is reached from there.
"""

from __future__ import annotations

from enum import IntFlag
from typing import NamedTuple

import numpy as np

from leakscope.heap.arrays import AnyArray, Booleans, Indices, Numbers, Octets
from leakscope.heap.labels import label_of
from leakscope.heap.paths import Paths
from leakscope.heap.snapshot import NAME_MASK, HeapSnapshot
from leakscope.heap.type_table import HeapType
from leakscope.record.snapshot_file import ROLE_SHIFT, EdgeRole

ROOT_ROLE = 255
"""Role of what a path begins with: its name is that of the root."""


class Part(IntFlag):
    """What a type is to a path."""

    NOTHING = 0
    PLAIN = 1
    """A container of Python's own that programs nest: list, dict, tuple …"""
    CELL = 2
    """It stands for what it contains: a cell, a static method."""
    TRACE = 4
    """A traceback or a frame."""
    CODE = 8
    CONSTANT = 16
    """What code has as constants and names."""
    WRAPPER = 32
    """A built-in type that keeps its items in a container of its own: partial, SimpleQueue …"""
    INNER = 64
    """A piece of such a type: links of an `lru_cache`, blocks of a `tee`, nodes of a context."""
    CACHE = 128
    """A `functools.lru_cache`."""
    WEAK_CONTAINER = 256
    TORCH_MODULE = 512
    BOXED = 1024
    """A container that a wrapper may keep its items in."""
    THREAD_LOCAL = 4096
    FUNCTION = 2048
    """A function, generator, coroutine or frame: what it is called says more than its type."""


_PARTS = {
    "builtins.list": Part.PLAIN | Part.BOXED,
    "builtins.tuple": Part.PLAIN | Part.BOXED | Part.CONSTANT,
    "builtins.dict": Part.PLAIN | Part.BOXED,
    "builtins.set": Part.PLAIN,
    "builtins.frozenset": Part.PLAIN | Part.CONSTANT,
    "collections.deque": Part.PLAIN,
    "collections.OrderedDict": Part.PLAIN,
    "collections.defaultdict": Part.PLAIN,
    "builtins.cell": Part.CELL,
    "builtins.staticmethod": Part.CELL,
    "builtins.classmethod": Part.CELL,
    "builtins.traceback": Part.TRACE,
    "builtins.frame": Part.TRACE | Part.FUNCTION,
    "builtins.code": Part.CODE | Part.CONSTANT,
    "builtins.str": Part.CONSTANT,
    "builtins.bytes": Part.CONSTANT,
    "builtins.int": Part.CONSTANT,
    "builtins.float": Part.CONSTANT,
    "builtins.complex": Part.CONSTANT,
    "builtins.function": Part.FUNCTION,
    "builtins.generator": Part.FUNCTION,
    "builtins.coroutine": Part.FUNCTION,
    "builtins.async_generator": Part.FUNCTION,
    "functools.partial": Part.WRAPPER,
    "functools._lru_cache_wrapper": Part.WRAPPER | Part.CACHE,
    "functools._lru_list_elem": Part.INNER,
    "_queue.SimpleQueue": Part.WRAPPER,
    "itertools._tee_dataobject": Part.INNER,
    "_thread._local": Part.WRAPPER | Part.THREAD_LOCAL,
    "_contextvars.Context": Part.WRAPPER,
}
_BY_BASE = {
    "weakref.WeakKeyDictionary": Part.WEAK_CONTAINER,
    "weakref.WeakValueDictionary": Part.WEAK_CONTAINER,
    "_weakrefset.WeakSet": Part.WEAK_CONTAINER,
    "torch.nn.modules.module.Module": Part.TORCH_MODULE,
    "functools.partial": Part.WRAPPER,
    "_thread._local": Part.WRAPPER | Part.THREAD_LOCAL,
}
_TORCH_TABLES = ("_modules", "_parameters", "_buffers")
_WEAK_TABLE = "data"
_TRACE_ROLES = (EdgeRole.TRACEBACK, EdgeRole.FRAME, EdgeRole.BACK)
_WRAPPED_ROLES = (EdgeRole.ITEM, EdgeRole.ATTRIBUTE)
_DEEPEST_CONSTANT = 8
"""Constants of code are tuples of tuples, and code within code: nobody nests more of them."""


class Steps(NamedTuple):
    """Paths by the steps that a programmer would write, position by position."""

    is_through: Booleans
    """This one is no step of its own."""
    parents: Indices
    """Position of the step before; -1 for a root."""
    roles: Octets
    names: Numbers
    """Number of the name that the step has; of a root, of its identity."""

    def labels(self) -> Numbers:
        """Role and name of each step, as one number."""
        return label_of(self.roles, self.names)


def parts_of(type_table: list[HeapType]) -> AnyArray:
    """What each type is to a path."""
    exact = {name: int(part) for name, part in _PARTS.items()}
    bases = {
        kind.address: int(_BY_BASE[kind.full_name])
        for kind in type_table
        if kind.full_name in _BY_BASE
    }
    found = []
    for kind in type_table:
        part = exact.get(kind.full_name, 0)
        for base in kind.mro:
            part |= bases.get(base, 0)
        if kind.module == "itertools" and not part:
            part = int(Part.WRAPPER)
        if kind.module == "builtins" and kind.qualified_name.startswith("hamt"):
            part = int(Part.INNER)
        found.append(part)
    return np.array(found, np.int32)


def find_steps(snapshot: HeapSnapshot, paths: Paths) -> Steps:
    """The steps of all paths."""
    is_root = paths.parents < 0
    labels = snapshot.labels[np.where(is_root, 0, paths.edges)] if len(snapshot.labels) else None
    if labels is None:
        labels = np.zeros(len(paths), np.uint64)
    roles = (labels >> np.uint64(ROLE_SHIFT)).astype(np.uint8)
    # An attribute is one whether the instance has built its `__dict__` or not.
    roles[roles == EdgeRole.NAME] = EdgeRole.ATTRIBUTE
    roles[is_root] = ROOT_ROLE
    names = snapshot.names.find(labels & np.uint64(NAME_MASK))
    identities = [snapshot.names.number(root.identity) for root in paths.roots]
    names[is_root] = np.array([*identities, 0], np.int64)[paths.edges[is_root]]
    parts = parts_of(snapshot.type_table)[snapshot.types[paths.nodes]]
    is_through, is_carrier = _seen_through(snapshot, paths.parents, roles, names, parts)
    parents = _nearest(paths.parents, is_through)
    # What a cell has is named as the cell is.
    named_by = np.arange(len(paths), dtype=np.int32)
    carried = np.flatnonzero(is_carrier[paths.parents] & ~is_root)
    while len(carried):
        named_by[carried] = paths.parents[named_by[carried]]
        above = named_by[carried]
        carried = carried[is_carrier[paths.parents[above]] & ~is_root[above]]
    return Steps(is_through, parents, roles[named_by], names[named_by])


def _seen_through(
    snapshot: HeapSnapshot, parents: Indices, roles: Octets, names: Numbers, parts: AnyArray
) -> tuple[Booleans, Booleans]:
    """Which positions are no steps; and which of those give their name to what they refer to."""
    is_root = parents < 0
    found: Booleans = roles == EdgeRole.NAMESPACE
    owners = np.where(found[parents] & ~is_root, parents[parents], parents)
    above = parts[owners]
    above[is_root] = 0
    is_boxed = (parts & Part.BOXED) != 0
    is_carrier = (parts & Part.CELL) != 0
    found |= roles == EdgeRole.CLOSURE_TUPLE
    found |= is_carrier | ((parts & Part.INNER) != 0)
    found |= ((parts & Part.TRACE) != 0) & np.isin(roles, _TRACE_ROLES)
    found |= ((above & Part.WRAPPER) != 0) & is_boxed & np.isin(roles, _WRAPPED_ROLES)
    found |= _tables(snapshot, names, parts, above)
    # The name, the documentation and the table of defaults of a function are its own parts; what
    # a program has put there is in its namespace.
    is_small = (parts & (Part.CONSTANT | Part.BOXED)) != 0
    is_own = (owners == parents) & np.isin(roles, _WRAPPED_ROLES)
    found |= ((above & Part.FUNCTION) != 0) & is_small & is_own
    is_code = (parts & Part.CODE) != 0
    is_constant = (parts & Part.CONSTANT) != 0
    for _ in range(_DEEPEST_CONSTANT):
        is_more = is_constant & is_code[parents] & ~is_code & ~is_root
        if not is_more.any():
            break
        is_code |= is_more
    found |= is_code & (is_code[parents] | (roles == EdgeRole.CODE))
    # The key of a cache is a tuple of the arguments; thread-local variables have a table of tables.
    is_table = ((above & (Part.CACHE | Part.THREAD_LOCAL)) != 0) & is_boxed
    is_inner = is_boxed & is_table[parents]
    found |= is_inner & (parts[owners[parents]] & Part.THREAD_LOCAL != 0)
    is_key = is_inner & (roles == EdgeRole.KEY)
    is_carrier |= is_key
    found |= is_key
    found &= ~is_root
    return found, is_carrier & found


def _tables(snapshot: HeapSnapshot, names: Numbers, parts: AnyArray, above: AnyArray) -> Booleans:
    """Tables that stand for the attributes or the items of what they belong to."""
    torch_tables = [snapshot.names.number(text) for text in _TORCH_TABLES]
    weak_table = snapshot.names.number(_WEAK_TABLE)
    found: Booleans = ((above & Part.TORCH_MODULE) != 0) & np.isin(names, torch_tables)
    found &= (parts & Part.PLAIN) != 0
    found |= ((above & Part.WEAK_CONTAINER) != 0) & (names == weak_table)
    return found


def _nearest(parents: Indices, is_through: Booleans) -> Indices:
    """Position of the next step above each, in as many rounds as the longest stretch of parts has
    digits in binary."""
    nearest = parents.copy()
    left = np.flatnonzero((nearest >= 0) & is_through[nearest])
    while len(left):
        nearest[left] = nearest[nearest[left]]
        left = left[(nearest[left] >= 0) & is_through[nearest[left]]]
    return nearest
