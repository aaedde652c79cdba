"""TensorFlow in a heap snapshot: the bytes of tensors, what tapes recorded, the lines of graphs.

The collector visits TensorFlow's graphs and functions. It does not see buffers, the records of a
tape, and the native half of a graph or an iterator. Nothing here executes an operation, because the
program's tapes would record it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import sleep
from types import FrameType
from typing import Any, NamedTuple

from leakscope.model import Frame, SiteTally
from leakscope.observe.anatomy import attribute_of, class_dict, class_name, module_dict
from leakscope.observe.heap.edges import Extras
from leakscope.observe.origins import origins, places
from leakscope.record.format import storable
from leakscope.record.snapshot_file import EdgeRole

_OPS = "tensorflow.python.framework.ops"
_FUNC_GRAPH = "tensorflow.python.framework.func_graph"
_TAPES = "tensorflow.python.eager.backprop"
_FORWARD = "tensorflow.python.eager.forwardprop"
_EXECUTOR = "tensorflow.python.eager.executor"
_CONTEXT = "tensorflow.python.eager.context"
_CONSTANT = "tensorflow.python.framework.constant_op"
_KERAS_STATE = "keras.src.backend.common.global_state"
_DTYPES = "tensorflow.python.framework.dtypes"
_RUNTIME = "tensorflow.python.pywrap_tfe"

_CALLBACKS = "_py_funcs_used_in_graph"
"""Attribute of a graph: the Python functions that its operations call."""

_HANDLE_DATA = "HandleData"
"""Class of the message with the shape and the type of a variable."""

_STRING, _RESOURCE, _VARIANT = 7, 20, 21
"""Numbers of TensorFlow's types whose elements are not plain numbers (types.proto)."""

_TRAINABLE = frozenset({1, 2, 8, 14, 18, 19})
"""Numbers of the types that tapes record: floating point and complex (types.proto)."""

SIZE_UNKNOWN = "opaque"
"""Part of a node that stands for native memory of unknown size."""

SLOT = 16
"""Bytes between two addresses in a snapshot."""

_STRETCH = 16
"""Tensors that a tape is asked about together, next to those of the tape before."""

_QUESTIONS = 1_000_000
"""The most tensors that tapes are asked about in one snapshot; each takes 10 to 50 ns."""

_TRIES, _PAUSE_S = 20, 0.0005
"""How often and how long to wait until no executor is within its `__del__`."""

_POINTER_BYTES = 8
_SAMPLE = 64
"""Tensors that are compared to find where a tensor has the pointer to its native half."""

_ASYNCHRONOUS = "operations run asynchronously: a tensor would wait until its operation is done"


class TensorFlowEdges:
    """Adds TensorFlow's buffers, tapes and native memory to a snapshot."""

    name = "tensorflow"

    def __init__(self, sites_of: Callable[[Any], tuple[Frame, ...]] = origins.of) -> None:
        self._sites_of = sites_of
        """Returns the lines that made a graph, noted when it was made."""
        self._handles = _Handles()

    def wanted(self) -> tuple[type, ...]:
        """Return the classes to ask for; none while TensorFlow is not loaded."""
        needed = (
            _class(_OPS, "EagerTensor"),
            _class(_OPS, "Graph"),
            _class(_TAPES, "GradientTape"),
            _class(_EXECUTOR, "Executor"),
        )
        if any(kind is None for kind in needed):
            return ()
        return tuple(kind for kind in (*needed, _class(_FORWARD, "ForwardAccumulator")) if kind)

    def why_not_now(self) -> str:
        """Return why asking a tensor could block the program; empty if it cannot."""
        context = module_dict(sys.modules.get(_CONTEXT)).get("_context")
        # `is_async()` is not asked: it waits for all pending operations.
        return _ASYNCHRONOUS if getattr(context, "_default_is_async", False) else ""

    def read(self, found: list[Any], extras: Extras) -> None:
        """Add buffers, records of tapes, and a node for each object of unknown size."""
        by_class = _Sorted(found)
        if _is_asynchronous(by_class.executors):
            extras.skipped["tensors of TensorFlow"] = _ASYNCHRONOUS
            tensors = []
        else:
            tensors = self._handles.only_complete(by_class.tensors, extras)
        _Tensors(extras).read(tensors)
        for graph in by_class.graphs:
            kind = by_class.name_of(graph)
            add_unknown(extras, graph, kind)
            name = getattr(graph, "name", None)
            if type(name) is str and name.isidentifier():
                extras.described[id(graph)] = f"{kind} {name}"
            if frames := self._sites_of(graph):
                extras.sites[id(graph)] = _lines(frames)
        for one in (*by_class.tapes, *by_class.others):
            add_unknown(extras, one, class_name(type(one)))
        _describe_registries(extras)
        _read_callbacks(places.sites_of(_CALLBACKS), extras)
        _read_tapes(by_class.tapes, tensors, extras)


class _Sorted:
    """The instances that were found, by class."""

    def __init__(self, found: Iterable[Any]) -> None:
        self.tensors: list[Any] = []
        self.graphs: list[Any] = []
        self.tapes: list[Any] = []
        self.executors: list[Any] = []
        self.others: list[Any] = []
        self._func_graph = _class(_FUNC_GRAPH, "FuncGraph")
        lists = (
            (_class(_OPS, "EagerTensor"), self.tensors),
            (_class(_OPS, "Graph"), self.graphs),
            (_class(_TAPES, "GradientTape"), self.tapes),
            (_class(_EXECUTOR, "Executor"), self.executors),
        )
        known: dict[type, list[Any]] = {}
        for one in found:
            kind = type(one)
            if kind not in known:
                mine = (to for base, to in lists if base is not None and issubclass(kind, base))
                known[kind] = next(mine, self.others)
            known[kind].append(one)

    def name_of(self, graph: Any) -> str:
        """`FuncGraph` for those of functions, whatever they derive from it."""
        base = self._func_graph
        return "FuncGraph" if base is not None and issubclass(type(graph), base) else "Graph"


# ── tensors ──


class _Handles:
    """Tells tensors that are complete from those that TensorFlow is still making.

    Any question to a tensor without its native half ends the process. There is such a tensor while
    `tf.constant` converts a value, which can run code of the program, and after it has failed.
    """

    def __init__(self) -> None:
        self._offset = 0

    def only_complete(self, tensors: list[Any], extras: Extras) -> list[Any]:
        """Return those that have their native half."""
        if not tensors:
            return []
        from ctypes import c_void_p

        self._offset = self._offset or _handle_offset(tensors)
        if self._offset:
            offset = self._offset
            return [one for one in tensors if c_void_p.from_address(id(one) + offset).value]
        if _is_converting():
            extras.skipped["tensors of TensorFlow"] = "a tensor is being made"
            return []
        return tensors


def _handle_offset(tensors: list[Any]) -> int:
    """Return where a tensor has the pointer to its native half: right before the number that
    TensorFlow gave the tensor. 0 if that number is not found in one place."""
    from ctypes import c_int64

    offsets = list(range(object.__basicsize__, type(tensors[0]).__basicsize__, _POINTER_BYTES))
    for tensor in tensors[:_SAMPLE]:
        number = tensor._id
        if number:
            offsets = [
                at for at in offsets if c_int64.from_address(id(tensor) + at).value == number
            ]
    if len(offsets) != 1 or offsets[0] < object.__basicsize__ + _POINTER_BYTES:
        return 0
    return offsets[0] - _POINTER_BYTES


def _is_converting() -> bool:
    """Is a thread within the one function that makes a tensor from a value?"""
    return _is_running(module_dict(sys.modules.get(_CONSTANT)).get("convert_to_eager_tensor"))


def _is_asynchronous(executors: list[Any]) -> bool:
    """Does a thread have an executor that runs operations later?

    An executor frees its native half in `__del__`, and waits there for its operations. One that was
    found within `__del__` is alive again and must not be asked. No other can get there by now.
    """
    if not executors:
        return False
    for _ in range(_TRIES):
        if not _is_running(class_dict(type(executors[0])).get("__del__")):
            break
        sleep(_PAUSE_S)
    else:
        return True
    with suppress(AttributeError):  # a collection clears one meanwhile
        return any(one.is_async() for one in executors if not gc.is_finalized(one))
    return False


def _is_running(function: Any) -> bool:
    """Is any thread within this function?"""
    code = getattr(function, "__code__", None)
    return any(_is_within(frame, code) for frame in sys._current_frames().values())


def _is_within(frame: FrameType | None, code: Any) -> bool:
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False


class _Buffer(NamedTuple):
    """Bytes of a tensor in the host's memory."""

    address: int
    bytes: int
    owner: int


class _Tensors:
    """Reads the memory of eager tensors."""

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
            except Exception as error:  # noqa: BLE001 - one tensor that does not answer is a gap
                self._extras.skipped["some tensors of TensorFlow"] = class_name(type(error))
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
            add_unknown(self._extras, tensor, "variant")
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
            add_unknown(self._extras, tensor, "strings")
            return None
        size = self._item_bytes[number]
        for dimension in shape:
            size *= dimension
        if not size:
            return None
        address = self._address(tensor) if not device and shape else 0
        if address:
            return _Buffer(address, size, id(tensor))
        self._add(id(tensor), own_address(tensor), size, device)
        return None

    def _describe(self, tensor: Any, number: int, shape: tuple[int, ...]) -> None:
        key = (type(tensor), number, shape)
        words = self._described.get(key)
        if words is None:
            words = f"{class_name(type(tensor))} {list(shape)} {self._names[number]}"
            self._described[key] = words
        self._extras.described[id(tensor)] = words

    def _address(self, tensor: Any) -> int:
        """Return where its bytes are in the host's memory. A reshaped tensor shares them. Nothing
        is copied."""
        array = tensor._numpy_internal()
        if type(array) is not self._array:
            return 0
        address: int = array.__array_interface__["data"][0]
        return address

    def _read_handle(self, handle: Any) -> None:
        """Add a variable's memory by its shape and type. Other resources do not tell their size."""
        size = _variable_bytes(handle)
        if size is None:
            add_unknown(self._extras, handle, _resource_type(handle._summarize_value()))
            return
        device = self._device(handle.backing_device)
        if size and device is not None:
            self._add(id(handle), own_address(handle), size, device)

    def _device(self, name: str) -> str | None:
        """Return `cuda:0`, an empty text for the host's memory, None for another machine's."""
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
                begin, end = buffer.address & -SLOT, buffer.address + buffer.bytes
            self._add(buffer.owner, begin, buffer.bytes, "")


def _variable_bytes(handle: Any) -> int | None:
    """Return the bytes of the variable behind a handle; None for another resource.

    `_handle_data` is not asked: while a collection clears the handle in another thread, that would
    end the process.
    """
    held = (one for one in gc.get_referents(handle) if class_name(type(one)) == _HANDLE_DATA)
    data: Any = next(held, None)
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
    """Return `IteratorResource` from TensorFlow's description of a handle. Nothing else is taken
    from it, because the name of a resource can be the program's."""
    kind = str(words).partition(' type="')[2].partition('"')[0].rpartition("::")[2]
    return kind if kind.isidentifier() else "resource"


def _device_name(name: str) -> str | None:
    if not name.startswith("/job:localhost/"):
        return None
    kind, _, number = name.rpartition("device:")[2].partition(":")
    if kind == "CPU":
        return ""
    return f"{'cuda' if kind == 'GPU' else kind.lower()}:{number}"


# ── objects of unknown size ──


def add_unknown(extras: Extras, one: Any, kind: str) -> None:
    """Add a node for native memory that an object owns, and whose size nobody can tell."""
    address = own_address(one)
    extras.add_node(address, kind, 0, part=SIZE_UNKNOWN)
    extras.add_edge(id(one), address, EdgeRole.STORAGE)


def own_address(one: Any) -> int:
    """Return an address for native memory that has none of its own: within the object that owns it,
    where no other object can begin."""
    has_room = type(one).__basicsize__ > SLOT
    return id(one) + SLOT if has_room else id(one) - SLOT  # where the collector has its links


# ── registries ──


def _describe_registries(extras: Extras) -> None:
    """Name the tables that live as long as the process by the names that people know them by."""
    ops = module_dict(sys.modules.get(_OPS))
    keras = module_dict(sys.modules.get(_KERAS_STATE))
    for words, table in (
        ("TensorFlow's gradient registry", ops.get("gradient_registry")),
        ("TensorFlow's default graph", _default_graph()),
        ("Keras' global state", keras.get("GLOBAL_STATE_TRACKER")),
    ):
        if table is not None:
            extras.described[id(table)] = words


def _default_graph() -> Any:
    """Return the default graph of this thread, if it has one. The stack is thread-local, so it is
    asked by name."""
    stack = module_dict(sys.modules.get(_OPS)).get("_default_graph_stack")
    return getattr(stack, "_global_default_graph", None)


def _read_callbacks(tallies: tuple[SiteTally, ...], extras: Extras) -> None:
    """Add the lines that put Python functions into the default graph.

    The lines were counted, not noted for each function. So the newest functions get the line that
    was counted most, as many as its share of the count.
    """
    callbacks = attribute_of(_default_graph(), _CALLBACKS)
    total = sum(tally.count for tally in tallies)
    if type(callbacks) is not list or not total:
        return
    newest_first = callbacks[::-1]
    so_far = 0
    for tally in tallies:
        begin, so_far = so_far, so_far + tally.count
        lines = _lines(tally.frames)
        share = slice(begin * len(newest_first) // total, so_far * len(newest_first) // total)
        for callback in newest_first[share]:
            extras.sites[id(callback)] = lines


def _lines(frames: tuple[Frame, ...]) -> tuple[tuple[str, int, str], ...]:
    return tuple((storable(at.file), at.line, storable(at.function)) for at in frames)


# ── tapes ──


def _read_tapes(tapes: list[Any], tensors: list[Any], extras: Extras) -> None:
    """Add what each ended tape has recorded. The records themselves are C++ objects.

    TensorFlow says whether the active tapes of this thread have recorded a tensor. So a tape is
    made active for as long as the question takes; no operation runs meanwhile.
    """
    ended = [tape for tape in tapes if _native_tape(tape) is not None]
    if not ended:
        return
    runtime: Any = sys.modules[_RUNTIME]
    if runtime.TFE_Py_TapeSetIsStopped() or not runtime.TFE_Py_TapeSetIsEmpty():
        extras.skipped["tensors recorded by tapes"] = "this thread is recording operations"
        return
    records = _Records(runtime, tensors)
    for tape in ended:
        source, native = id(tape), _native_tape(tape)
        for variable in runtime.TFE_Py_TapeWatchedVariables(native):
            extras.add_edge(source, id(variable), EdgeRole.VARIABLE)
        for tensor in records.of(native):
            extras.add_edge(source, id(tensor), EdgeRole.SAVED)
    if records.is_incomplete:
        extras.skipped["tensors recorded by some tapes"] = "too many tapes and tensors"


def _native_tape(tape: Any) -> Any:
    """Return the C++ tape behind a `GradientTape`; None while it records or has nothing."""
    if getattr(tape, "_recording", True):
        return None
    return getattr(getattr(tape, "_tape", None), "_tape", None)


class _Records:
    """Finds the tensors of one tape after another.

    Tensors are numbered as they are made, so those of one tape are neighbors. Tapes come in the
    order in which they were made, nearly always. So each search starts next to the last one.
    """

    def __init__(self, runtime: Any, tensors: list[Any]) -> None:
        self._runtime = runtime
        self._has_any: Callable[[list[Any]], int] = runtime.TFE_Py_TapeSetPossibleGradientTypes
        trainable = [one for one in tensors if one._datatype_enum() in _TRAINABLE]
        self._tensors = sorted(trainable, key=lambda tensor: tensor._id)
        self._last = range(0)
        self._allowance = _QUESTIONS
        self.is_incomplete = False

    def of(self, tape: Any) -> list[Any]:
        """Return the tensors that this tape has recorded."""
        self._runtime.TFE_Py_TapeSetAdd(tape)
        try:
            found = self._after(self._last.stop) or self._before(self._last.start)
            if not found and self._allowance > 0:
                found = self._among(0, len(self._tensors))
        finally:
            self._runtime.TFE_Py_TapeSetRemove(tape)
        if found:
            self._last = range(min(found), max(found) + 1)
        self.is_incomplete |= self._allowance <= 0
        return [self._tensors[index] for index in found]

    def _after(self, begin: int) -> list[int]:
        """Return the neighbors that begin here, until a stretch has none."""
        found: list[int] = []
        while more := self._among(begin, begin + _STRETCH):
            found += more
            begin += _STRETCH
        return found

    def _before(self, end: int) -> list[int]:
        """Return the neighbors that end here, until a stretch has none."""
        found: list[int] = []
        while end > 0 and (more := self._among(max(end - _STRETCH, 0), end)):
            found += more
            end -= _STRETCH
        return found

    def _among(self, begin: int, end: int) -> list[int]:
        some = self._tensors[begin:end]
        self._allowance -= len(some)
        if not some or not self._has_any(some):
            return []
        if len(some) == 1:
            return [begin]
        middle = begin + len(some) // 2
        return self._among(begin, middle) + self._among(middle, end)


def _class(module: str, name: str) -> type | None:
    """Return a class of a module that is loaded."""
    found = module_dict(sys.modules.get(module)).get(name)
    return found if issubclass(type(found), type) else None
