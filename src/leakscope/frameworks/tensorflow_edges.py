"""TensorFlow in a heap snapshot: the bytes of tensors, what tapes recorded, the lines of graphs.

TensorFlow's graphs and functions are visited by the collector. Buffers, the records of a tape, and
the native half of a graph or an iterator are not. No operation is executed here: an operation would
be recorded by the program's tapes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from leakscope.model import Frame
from leakscope.observe.anatomy import class_name, module_dict
from leakscope.observe.heap.edges import Extras
from leakscope.record.snapshot_file import EdgeRole

_OPS = "tensorflow.python.framework.ops"
_TAPES = "tensorflow.python.eager.backprop"
_FORWARD = "tensorflow.python.eager.forwardprop"
_CONTEXT = "tensorflow.python.eager.context"
_DTYPES = "tensorflow.python.framework.dtypes"
_RUNTIME = "tensorflow.python.pywrap_tfe"

_TRAINABLE = frozenset({1, 2, 8, 14, 18, 19})
"""Numbers of the types that tapes record: floating point and complex (types.proto)."""

_STRETCH = 16
"""Tensors that are asked about together, next to those of the tape before."""

_QUESTIONS = 4_000_000
"""The most tensors that tapes are asked about in one snapshot; 10 ns each."""

_STRING, _RESOURCE, _VARIANT = 7, 20, 21
"""Numbers of TensorFlow's types whose elements are no plain numbers (types.proto)."""

_SIZE_UNKNOWN = "opaque"
"""Part of a node that stands for native memory whose size nobody can tell."""

_SLOT = 16
"""Bytes between two addresses in a snapshot. Native memory that has no address of its own gets one
within the object that owns it, where nothing else can begin."""


class TensorFlowEdges:
    """What one process's TensorFlow adds to a snapshot."""

    name = "tensorflow"

    def __init__(self, sites_of: Callable[[Any], tuple[Frame, ...]] | None = None) -> None:
        self._sites_of = sites_of
        """Returns the lines that made a graph, noted when it was made."""

    def wanted(self) -> tuple[type, ...]:
        """Return the classes to be asked; none while TensorFlow is not loaded."""
        tensor, graph, tape = (
            _class(_OPS, "EagerTensor"),
            _class(_OPS, "Graph"),
            _class(_TAPES, "GradientTape"),
        )
        if tensor is None or graph is None or tape is None:
            return ()
        forward = _class(_FORWARD, "ForwardAccumulator")
        return (tensor, graph, tape) if forward is None else (tensor, graph, tape, forward)

    def why_not_now(self) -> str:
        """Return why asking a tensor could block or disturb the program; empty if it cannot."""
        context = module_dict(sys.modules.get(_CONTEXT)).get("_context")
        if context is None:
            return ""
        if context._default_is_async or context.is_async():
            return "operations run asynchronously: asking a tensor would wait for its operation"
        return ""

    def read(self, found: list[Any], extras: Extras) -> None:
        """Add buffers, the records of tapes, and a node for each thing of unknown size."""
        tensor_type, graph_type = _class(_OPS, "EagerTensor"), _class(_OPS, "Graph")
        tape_type = _class(_TAPES, "GradientTape")
        if tensor_type is None or graph_type is None or tape_type is None:
            return
        tensors, tapes, others = [], [], []
        for one in found:
            kind = type(one)
            if issubclass(kind, tensor_type):
                tensors.append(one)
            elif issubclass(kind, tape_type):
                tapes.append(one)
            else:
                others.append(one)
        _Tensors(extras).read(tensors)
        for one in (*tapes, *others):
            _add_unknown(extras, one, class_name(type(one)))
            if self._sites_of is not None and issubclass(type(one), graph_type):
                lines = tuple((f.file, f.line, f.function) for f in self._sites_of(one))
                if lines:
                    extras.sites[id(one)] = lines
        _read_tapes(tapes, tensors, extras)


# ── tensors ──


class _Buffer(NamedTuple):
    """Bytes of a tensor in the host's memory."""

    address: int
    bytes: int
    owner: int


class _Tensors:
    """Reads the memory of eager tensors, once per type, device and shape where that is enough."""

    def __init__(self, extras: Extras) -> None:
        self._extras = extras
        self._item_bytes: dict[int, int] = {}
        self._names: dict[int, str] = {}
        self._devices: dict[str, str | None] = {}
        self._described: dict[tuple[Any, ...], str] = {}
        self._array: Any = module_dict(sys.modules.get("numpy")).get("ndarray")

    def read(self, tensors: list[Any]) -> None:
        buffers = []
        for tensor in tensors:
            try:
                buffer = self._read_one(tensor)
            except Exception as error:  # noqa: BLE001 - one tensor that cannot be asked is a gap
                self._extras.skipped.setdefault(
                    "some tensors of TensorFlow", class_name(type(error))
                )
            else:
                if buffer is not None:
                    buffers.append(buffer)
        self._add_all(buffers)

    def _read_one(self, tensor: Any) -> _Buffer | None:
        number = tensor._datatype_enum()
        if number == _RESOURCE:
            self._read_handle(tensor)
            return None
        if number == _VARIANT:
            _add_unknown(self._extras, tensor, "variant")
            return None
        device = self._device(tensor.backing_device)
        if device is None:
            return None
        if number not in self._item_bytes:
            dtype = tensor.dtype
            self._item_bytes[number], self._names[number] = dtype.size, dtype.name
        shape = tensor._shape_tuple()
        self._describe(tensor, number, shape)
        if number == _STRING:
            _add_unknown(self._extras, tensor, "strings")
            return None
        size = self._item_bytes[number]
        for dimension in shape:
            size *= dimension
        if not size:
            return None
        address = self._address(tensor) if not device and shape else 0
        if address:
            return _Buffer(address, size, id(tensor))
        self._add(id(tensor), id(tensor) + _SLOT, size, device)
        return None

    def _describe(self, tensor: Any, number: int, shape: tuple[int, ...]) -> None:
        key = (type(tensor), number, shape)
        words = self._described.get(key)
        if words is None:
            words = f"{class_name(type(tensor))} {list(shape)} {self._names[number]}"
            self._described[key] = words
        self._extras.described[id(tensor)] = words

    def _address(self, tensor: Any) -> int:
        """Where its bytes are in the host's memory: a reshaped tensor shares them. Nothing is
        copied."""
        array = tensor._numpy_internal()
        return array.__array_interface__["data"][0] if type(array) is self._array else 0

    def _read_handle(self, handle: Any) -> None:
        """Add a variable's memory, by its shape and type; other resources do not tell their size."""
        size = _variable_bytes(handle)
        if size is None:
            _add_unknown(self._extras, handle, _resource_type(handle._summarize_value()))
            return
        device = self._device(handle.backing_device)
        if size and device is not None:
            self._add(id(handle), id(handle) + _SLOT, size, device)

    def _device(self, name: str) -> str | None:
        """`cuda:0`, empty for the host's memory, None for another machine's."""
        if name not in self._devices:
            self._devices[name] = _device_name(name)
        return self._devices[name]

    def _add(self, owner: int, address: int, size: int, device: str) -> None:
        self._extras.add_node(address, "buffer", size, part="tensors", device=device)
        self._extras.add_edge(owner, address, EdgeRole.STORAGE)

    def _add_all(self, buffers: list[_Buffer]) -> None:
        """Add a node for each buffer. A slice lies within the tensor that it was cut from."""
        begin = end = 0
        for buffer in sorted(buffers, key=lambda one: (one.address, -one.bytes)):
            if buffer.address >= end:
                begin, end = buffer.address & -_SLOT, buffer.address + buffer.bytes
            self._add(buffer.owner, begin, buffer.bytes, "")


def _variable_bytes(handle: Any) -> int | None:
    """Bytes of the variable behind a handle; None if it is the handle of something else."""
    data = handle._handle_data
    if data is None or not data.is_set or not data.shape_and_type:
        return None
    dtypes: Any = sys.modules[_DTYPES]
    total = 0
    for one in data.shape_and_type:
        count = 1
        for dimension in one.shape.dim:
            count *= max(dimension.size, 0)
        total += 0 if one.shape.unknown_rank else count * dtypes.as_dtype(one.dtype).size
    return total


def _resource_type(words: object) -> str:
    """`IteratorResource`, of TensorFlow's own description of a handle. Nothing else is taken from
    it: the name of a resource may be the program's."""
    _, found, rest = str(words).partition(' type="')
    kind = rest.partition('"')[0].rpartition("::")[2]
    return kind if found and kind.isidentifier() else "resource"


def _device_name(name: str) -> str | None:
    if not name.startswith("/job:localhost/"):
        return None
    kind, _, number = name.rpartition("device:")[2].partition(":")
    if kind == "CPU":
        return ""
    return f"{'cuda' if kind == 'GPU' else kind.lower()}:{number}"


# ── things of unknown size ──


def _add_unknown(extras: Extras, one: Any, kind: str) -> None:
    address = id(one) + _SLOT
    extras.add_node(address, kind, 0, part=_SIZE_UNKNOWN)
    extras.add_edge(id(one), address, EdgeRole.STORAGE)


# ── tapes ──


def _read_tapes(tapes: list[Any], tensors: list[Any], extras: Extras) -> None:
    """Add what each ended tape has recorded. The records themselves are C++ objects.

    TensorFlow says whether the active tapes of this thread have recorded a tensor. So a tape is
    made active for as long as the question takes; no operation runs meanwhile.
    """
    ended = [tape for tape in tapes if tape._tape is not None and not tape._recording]
    if not ended:
        return
    runtime: Any = sys.modules[_RUNTIME]
    if runtime.TFE_Py_TapeSetIsStopped() or not runtime.TFE_Py_TapeSetIsEmpty():
        extras.skipped["tensors recorded by tapes"] = "this thread is recording operations"
        return
    records = _Records(runtime, tensors)
    for tape in ended:
        source, own = id(tape), tape._tape._tape
        for variable in runtime.TFE_Py_TapeWatchedVariables(own):
            extras.add_edge(source, id(variable), EdgeRole.VARIABLE)
        for tensor in records.of(own):
            extras.add_edge(source, id(tensor), EdgeRole.SAVED)
    if records.is_incomplete:
        extras.skipped["tensors recorded by some tapes"] = "too many tapes and tensors"


class _Records:
    """Finds the tensors of one tape after another.

    Tensors are numbered as they are made, and so those of one tape are neighbors. Tapes come in the
    order in which they were made, nearly always. So the search starts where the last one ended.
    """

    def __init__(self, runtime: Any, tensors: list[Any]) -> None:
        self._runtime = runtime
        self._any: Callable[[list[Any]], int] = runtime.TFE_Py_TapeSetPossibleGradientTypes
        trainable = [one for one in tensors if one._datatype_enum() in _TRAINABLE]
        self._tensors = sorted(trainable, key=lambda tensor: tensor._id)
        self._next = 0
        self._allowance = _QUESTIONS
        self.is_incomplete = False

    def of(self, tape: Any) -> list[Any]:
        """Return the tensors that this tape has recorded."""
        runtime = self._runtime
        runtime.TFE_Py_TapeSetAdd(tape)
        try:
            found = self._from(self._next)
            if not found and self._allowance > 0:
                found = self._among(0, len(self._tensors))
        finally:
            runtime.TFE_Py_TapeSetRemove(tape)
        if found:
            self._next = found[-1] + 1
        self.is_incomplete |= self._allowance <= 0
        return [self._tensors[index] for index in found]

    def _from(self, begin: int) -> list[int]:
        """The neighbors that begin here, until a stretch has none."""
        found: list[int] = []
        while more := self._among(begin, min(begin + _STRETCH, len(self._tensors))):
            found += more
            begin += _STRETCH
        return found

    def _among(self, begin: int, end: int) -> list[int]:
        some = self._tensors[begin:end]
        self._allowance -= len(some)
        if not some or not self._any(some):
            return []
        if len(some) == 1:
            return [begin]
        middle = (begin + end) // 2
        return self._among(begin, middle) + self._among(middle, end)


def _class(module: str, name: str) -> type | None:
    """A class of a module that is loaded, to its end or not."""
    found = module_dict(sys.modules.get(module)).get(name)
    return found if issubclass(type(found), type) else None
