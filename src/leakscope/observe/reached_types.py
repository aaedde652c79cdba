"""What a type says of its things: how to go on from one, and how to weigh it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import Enum
from types import CodeType, FrameType, FunctionType, MethodDescriptorType, ModuleType
from typing import Any

from leakscope.model import LARGEST_BLOCK_BYTES, NO_BLOCKS, Blocks
from leakscope.observe import autograd, foreign
from leakscope.observe.autograd import HEAP_TYPE, flags_of, mro_of
from leakscope.observe.tensor_bytes import tensor_bytes

_HAVE_GC = 1 << 14
_GC_HEADER_BYTES = 16
_GENERATOR_BYTES = 2_648
"""Of malloc's memory for one `torch.Generator` (torch 2.13): the 624 words of its state, of which
Python sees nothing. Every iterator of a shuffled loader has one."""


class Role(Enum):
    OBJECT = "object"
    INSTANCE = "instance"
    """Of a class written in Python, without slots."""
    FUNCTION = "function"
    DICT = "dict"
    TENSOR = "tensor"
    SAVED = "saved tensor"
    STORAGE = "storage"
    NODE = "node"
    FOREIGN = "tensor of another framework"
    OPAQUE = "opaque"
    """Owns memory that nobody can ask for: a traced graph, a compiled function."""
    ARRAY = "array"
    DATA = "data"
    """The memory under an array; it has no Python object."""
    NOTHING = "nothing"
    """Not to be entered: modules, classes, code, and what everybody has."""


def look_at_type(kind: type) -> tuple[Role, Callable[[Any], int]]:
    torch = sys.modules.get("torch")
    if issubclass(kind, (type, ModuleType, CodeType)) or id(kind) in _EVERYBODYS:
        return Role.NOTHING, _no_size
    if autograd.is_node_type(kind):
        return Role.NODE, lambda _: autograd.NODE_BYTES
    if torch is not None:
        if issubclass(kind, torch._C.TensorBase):
            return Role.TENSOR, tensor_bytes
        if issubclass(kind, torch._C.StorageBase):
            return Role.STORAGE, torch._C.StorageBase.nbytes
        if kind is torch._C._autograd.SavedTensor:
            return Role.SAVED, object.__sizeof__
        if kind is torch._C.Generator:
            return Role.OBJECT, lambda _: _GENERATOR_BYTES
    if foreign.is_present():
        if foreign.is_tensor_type(kind):
            return Role.FOREIGN, object.__sizeof__
        if foreign.is_opaque_type(kind):
            return Role.OPAQUE, _sizer(kind)
    array = getattr(sys.modules.get("numpy"), "ndarray", None)
    if array is not None and issubclass(kind, array):
        return Role.ARRAY, object.__sizeof__
    if kind is FunctionType or kind is FrameType:
        return Role.FUNCTION, sys.getsizeof
    if issubclass(kind, dict):
        return Role.DICT, _sizer(kind)
    return (Role.INSTANCE if _is_plain(kind) else Role.OBJECT), _sizer(kind)


_EVERYBODYS = {id(type(thing)) for thing in (None, True, ..., NotImplemented)}


def _no_size(_: Any) -> int:
    return 0


def _sizer(kind: type) -> Callable[[Any], int]:
    """Reads sizes as `sys.getsizeof` does, with the `__sizeof__` of the nearest class written in
    C: those of the program's classes are its own code."""
    if not flags_of(kind) & HEAP_TYPE:
        return sys.getsizeof
    # `array.array` is a class made at run time, and written in C all the same.
    in_c = next(base for base in mro_of(kind) if _sizes_in_c(base))
    size_of, before = in_c.__sizeof__, _GC_HEADER_BYTES * bool(flags_of(kind) & _HAVE_GC)
    if _is_plain(kind):
        before = _BYTES_BEFORE_PLAIN
    return lambda thing: size_of(thing) + before


def _sizes_in_c(kind: type) -> bool:
    own = autograd.namespace_of(kind).get("__sizeof__")
    return type(own) is MethodDescriptorType or not flags_of(kind) & HEAP_TYPE


def _is_plain(kind: type) -> bool:
    """True where Python itself manages the attributes of the instances."""
    return bool(type.__dict__["__dictoffset__"].__get__(kind) < 0)


class _Plain:
    pass


_BYTES_BEFORE_PLAIN = sys.getsizeof(_Plain()) - object.__sizeof__(_Plain())
"""What an instance with a `__dict__` has in front of it, which differs between Pythons."""


_PLAIN = {id(kind) for kind in (int, float, complex, str, bytes, bool, type(None))}
_SAMPLED = 64
"""A look weighs dozens of containers: 64 sizes take 10 µs. No other number was tried."""
_OURS = 3
"""References to each that are there when it is nobody else's: its container's, our list's, and that
of the call that counts."""
_ALIGNED_BYTES = 16


def is_all_plain(things: list[Any]) -> bool:
    """Numbers and strings only, which lead nowhere."""
    return _PLAIN.issuperset(map(id, map(type, things)))


def own_plain_blocks(things: list[Any]) -> tuple[int, Blocks]:
    """What these weigh that nobody else holds, by a sample of them: all of it, and how it lies
    in blocks."""
    sample = range(0, len(things), max(len(things) // _SAMPLED, 1))
    total, small = 0, NO_BLOCKS
    for index in sample:
        if sys.getrefcount(things[index]) <= _OURS:
            size = -(-sys.getsizeof(things[index]) // _ALIGNED_BYTES) * _ALIGNED_BYTES
            total += size
            small = small.plus(Blocks(*blocks_of(size)))
    return total * len(things) // len(sample), small.times(len(things) / len(sample))


def bytes_before_table(kind: type) -> int:
    """Of things that have what they hold in a table of its own: the object beside it. 0 where all
    lies in one piece."""
    return next((empty for table_of, empty in _WITH_TABLES if issubclass(kind, table_of)), 0)


def blocks_of(size: int, before_table: int = 0) -> tuple[int, int]:
    """In how many of Python's blocks a thing of this size lies, and what of it is not malloc's."""
    if before_table and size > before_table:
        number, small = blocks_of(size - before_table)
        return number + 1, small + blocks_of(before_table)[1]
    if size <= 0:
        return 0, 0
    size = -(-size // _ALIGNED_BYTES) * _ALIGNED_BYTES
    # Python counts what it has from malloc as a block too; malloc's counters have its bytes.
    return 1, size if size <= LARGEST_BLOCK_BYTES else 0


_WITH_TABLES = tuple((kind, sys.getsizeof(kind())) for kind in (dict, list, set))
"""What these hold lies in a table of its own, beside the object."""


def data_bytes(tensor: Any) -> int:
    """Of the elements that a tensor shows, not of the storage they lie in."""
    base = sys.modules["torch"]._C.TensorBase
    return int(base.numel(tensor)) * int(base.element_size(tensor))
