"""What PyTorch's tensors and autograd graphs refer to in C++, read without changing any of it.

The collector sees neither the storage of a tensor nor the nodes of a graph nor what they have saved
for the backward pass. This adapter adds them to a heap snapshot. It never imports torch, and reads

- saved tensors only by `_raw_saved_x.data`: `_saved_x` fires unpack hooks, runs a checkpointed
  forward again, and raises after an in-place edit;
- attributes only by the descriptors of `torch._C.TensorBase`, with torch functions switched off:
  the program's tensor classes may have overridden everything else;
- nothing that a tracer records or a dispatcher sees.

Reading leaves a Python object behind for each node (64 bytes) and for each saved tensor or gradient
that had none (96 bytes): PyTorch keeps it as long as the thing itself. Storages, with the exception
of a few, get none.

`why_not_now()` says when even this could do harm: docs/decisions/0027-safe-points-in-torch.md.
"""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from _thread import get_ident
from contextlib import suppress
from opcode import opmap
from time import monotonic_ns, sleep
from typing import Any, NamedTuple

from leakscope.observe.anatomy import class_dict, class_name, mro_of
from leakscope.observe.devices.door import address_of, device_of, rounded
from leakscope.observe.heap.edges import Extras
from leakscope.record.snapshot_file import EdgeRole

TENSORS, SAVED, NODES = "tensors", "saved", "nodes"
SHARED_MEMORY, ARRAYS, PYTHON = "shared memory", "arrays", "python"

NODE_BYTES = 640
"""One graph node in C++ with its edges (torch 2.13: 560 to 824, as malloc counts)."""

_STACK_PER_LEVEL = 230
"""Bytes of the C stack that torch needs for each level of a graph that it frees, once Python has
seen its nodes (torch 2.13: a chain of 45,000 ends a program with a stack of 8 MiB)."""

_USUAL_STACK = 8 << 20
"""Bytes of a thread's stack where no limit is set."""

_TENSOR_BYTES = 208
"""A tensor in C++, beside its Python object and its storage."""

_STORAGE_BYTES = 144
"""A storage in C++ beside its data, counted with the first tensor that has it."""

_AUTOGRAD_BYTES = 190
"""More for a tensor that autograd knows."""

_VIEW_BYTES = 310
"""More for a view that autograd knows."""

_COMPARED = 3
"""Storages of different sizes that are compared with what torch says of them."""

_ONLY_IN_C = 3
"""References to a thing that nothing but C++ holds: its own, our variable, the call that counts."""

_STORAGE_NAME = "UntypedStorage"
_RAW = "_raw_saved_"
_HEAP_TYPE = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: a class made while running, which a cache must not keep alive."""

_RUN_BACKWARD, _GRAD = "run_backward", "grad"
_SETTING = (opmap["STORE_ATTR"], opmap["DELETE_ATTR"])
_TURN_S = 0.05
"""Other threads are kept waiting for so long at most."""

_TURN_NS = 40_000_000
"""A turn ends so long after it began, well before the next thread asks for the lock."""

_HALF_A_MICROSECOND = 5e-7
_PAUSE_S, _TRIES = 0.0005, 100
"""How often, and how many times, a thread that runs a backward pass is waited for."""

_INTEGERS = {int}
_flags_of = type.__dict__["__flags__"].__get__


class TorchEdges:
    """PyTorch's part in a snapshot."""

    name = "torch"

    def __init__(self, references_of_caller: int = 2) -> None:
        """The caller of `read` holds so many references to each instance that it found."""
        self._references_of_caller = references_of_caller

    def wanted(self) -> tuple[type, ...]:
        c = _loaded()
        return () if c is None else (c.TensorBase, c.StorageBase, *_saved_tensor_types(c))

    def why_not_now(self) -> str:
        return "" if _loaded() is None else _why_not_now(sys.modules["torch"])

    def read(self, found: list[Any], extras: Extras) -> None:
        c = _loaded()
        if c is None:
            return
        try:
            with _Turn() as turn:
                why = self.why_not_now()
                if why:
                    extras.skipped[self.name] = why
                    return
                reading = _Reading(c, extras, turn)
                with c.DisableTorchFunction():
                    reading.read(found, self._references_of_caller)
                _seen_levels.append(reading.levels)
        except Exception as error:  # noqa: BLE001 - the program goes on, with what was read so far
            extras.skipped[self.name] = f"{type(error).__name__}: {error}"


_LONG_GRAPHS = "long autograd graphs"
_TOO_LONG = "torch frees a graph that Python has seen by recursion; this one is too long for that"

_seen_levels: list[int] = []
"""How deep the readings of this process went. What each has seen may be one chain: a state that is
carried from step to step."""


def _levels_left() -> int:
    """How deep a reading may go, so that the graph can still be freed on the stack there is."""
    limit, _ = resource.getrlimit(resource.RLIMIT_STACK)
    stack = _USUAL_STACK if limit in (resource.RLIM_INFINITY, -1) else limit
    return int(stack) // _STACK_PER_LEVEL - sum(_seen_levels)


def _loaded() -> Any:
    """`torch._C`, once it is complete; else None."""
    c = getattr(sys.modules.get("torch"), "_C", None)
    return c if hasattr(c, "TensorBase") and hasattr(c, "StorageBase") else None


def _saved_tensor_types(c: Any) -> tuple[type, ...]:
    """The class of a saved tensor in Python's hands, in a torch that has one."""
    kind = getattr(getattr(c, "_autograd", None), "SavedTensor", None)
    return () if kind is None else (kind,)


# ── safe points ──────────────────────────────────────────────────────────────


def _why_not_now(torch: Any) -> str:
    """What reading could harm at this moment; empty if it is safe."""
    c = torch._C
    if getattr(torch.__spec__, "_initializing", False):
        return "PyTorch is being imported"
    if c._get_tracing_state() is not None:
        return "torch.jit.trace is recording"
    if _is_dynamo_listening():
        return "torch.compile is running this code"
    if why := _why_not_beside_others():
        return why
    if c._current_graph_task_id() != -1 and torch.cuda.is_initialized():
        return "a backward pass is running, with threads of its own for the GPU"
    if not _has_interpreter_lock() and len(sys._current_frames()) > 1:
        return "this Python has no interpreter lock that would keep other threads still"
    return ""


def _is_dynamo_listening() -> bool:
    """Does torch.compile look at every function that this thread calls? It would compile ours."""
    dynamo = sys.modules.get("torch._C._dynamo.eval_frame")
    callback = getattr(dynamo, "get_eval_frame_callback", None)
    return callback is not None and callback() not in (None, False)


def _why_not_beside_others() -> str:
    """What a thread is doing without the interpreter lock that no reading may meet."""
    tops = sys._current_frames()
    # Our own frame in a variable of ours would be a cycle, and keep what is being read alive.
    tops.pop(get_ident(), None)
    for frame in tops.values():
        names = frame.f_code.co_names
        # Saved tensors are freed and gradients are set. Python calls the engine by one name, and
        # C++ has no frames: the innermost is that of the function that made the call.
        if _RUN_BACKWARD in names:
            return "another thread runs a backward pass"
        # Within `parameter.grad = None` torch lets go of the lock while the old gradient, which the
        # parameter still names, is being freed.
        if _GRAD in names and frame.f_code.co_code[frame.f_lasti] in _SETTING:
            return "another thread drops a gradient"
    return ""


def _has_interpreter_lock() -> bool:
    is_enabled = getattr(sys, "_is_gil_enabled", None)
    return is_enabled is None or bool(is_enabled())


class _Turn:
    """A time in which no other Python thread runs, so that none begins a backward pass.

    A thread asks for the interpreter lock after the switch interval that it found when it began to
    wait. So a longer one is set, and threads that wait already get their turn first.
    """

    def __init__(self) -> None:
        self._interval_s = 0.0
        """As the program has it; 0 if there is no other thread."""
        self._own_s = 0.0
        self._ends_ns = sys.maxsize
        self.is_first = True
        """No other thread has run since the reading began."""

    def __enter__(self) -> _Turn:
        if len(sys._current_frames()) > 1:
            self._interval_s = sys.getswitchinterval()
            sys.setswitchinterval(_TURN_S)
            self._own_s = sys.getswitchinterval()  # whole microseconds, which are cut off
            sleep(self._interval_s)
            self._wait()
        return self

    def __exit__(self, *_: object) -> None:
        if self._interval_s and sys.getswitchinterval() == self._own_s:
            sys.setswitchinterval(self._interval_s + _HALF_A_MICROSECOND)

    def go_on(self) -> None:
        """Let other threads have a turn when this one is used up."""
        if monotonic_ns() >= self._ends_ns:
            self.is_first = False
            if not self._wait():
                raise TimeoutError("other threads change gradients without a pause")

    def _wait(self) -> bool:
        """Begin a turn, once no other thread is at what must not be met."""
        for _ in range(_TRIES):
            sleep(_PAUSE_S)
            if not _why_not_beside_others():
                self._ends_ns = monotonic_ns() + _TURN_NS
                return True
        return False


# ── storages ─────────────────────────────────────────────────────────────────


class _StorageImpl(ctypes.Structure):
    """The beginning of a storage in C++. Believed only after a comparison with what torch says."""

    _fields_ = (
        ("functions", ctypes.c_size_t),
        ("counts", ctypes.c_size_t),
        ("data", ctypes.c_size_t),
        ("deleter", ctypes.c_size_t),
        ("context", ctypes.c_size_t),
        ("device", ctypes.c_size_t),
        ("bytes", ctypes.c_ssize_t),
        ("is_symbolic", ctypes.c_bool),
        ("is_resizable", ctypes.c_bool),
    )


class _TensorImpl(ctypes.Structure):
    """The beginning of a tensor in C++. Believed only where its storage is the one torch names."""

    _fields_ = (
        ("functions", ctypes.c_size_t),
        ("counts", ctypes.c_size_t),
        ("storage", ctypes.c_size_t),
        ("autograd", ctypes.c_size_t),
    )


class _SavedObject(ctypes.Structure):
    """The beginning of a Python object of C++'s. Of one that Python owns, both pointers are equal;
    of one that lies in a node, which may be gone, the second is missing."""

    _fields_ = (
        ("references", ctypes.c_size_t),
        ("type", ctypes.c_size_t),
        ("value", ctypes.c_size_t),
        ("owned", ctypes.c_size_t),
    )


class _Storage(NamedTuple):
    """The memory of a tensor."""

    data: int
    """Where it begins; 0 for a tensor that only tells a size: meta, fake, a wrapper."""
    bytes: int
    is_resizable: bool
    """False for memory of somebody else's: a NumPy array's, another process's."""
    is_in_shared_memory: bool
    is_lazy_copy: bool
    """Shares its memory with other storages until one of them is written to."""


_NO_MEMORY = _Storage(0, 0, True, False, False)


class _Storages:
    """Reads storages: without making a Python object of each, where their layout is known."""

    _is_layout_known: bool | None = None
    """None until enough storages were there to compare."""

    _by_deleter: dict[int, tuple[bool, bool]] = {}  # noqa: RUF012 - functions of C++ stay
    """Is it shared memory, is it a lazy copy: told by the function that frees it."""

    def __init__(self, c: Any) -> None:
        self._c = c
        self._storage_address = getattr(c, "_storage_address", None)

    def address_of(self, tensor: Any) -> int:
        """Where a tensor's storage is in C++; 0 for one without: sparse, mkldnn."""
        try:
            if self._storage_address is not None:
                return int(self._storage_address(tensor))
            return int(self._c.TensorBase.untyped_storage(tensor)._cdata)
        except (RuntimeError, AttributeError):  # NotImplementedError is one of the first
            return 0

    def learn(self, tensors: list[Any]) -> None:
        """Compare what lies in memory with what torch says, for a few tensors."""
        if self._is_layout_known is not None:
            return
        sizes: set[int] = set()
        for tensor in tensors:
            address = self.address_of(tensor)
            if not address:
                continue
            seen = _StorageImpl.from_address(address)
            if seen.bytes in sizes or not seen.data:
                continue
            asked = self._ask(tensor)
            if (seen.data, seen.bytes, seen.is_resizable) != asked[:3]:
                _Storages._is_layout_known = False
                return
            sizes.add(seen.bytes)
            if len(sizes) >= _COMPARED:
                _Storages._is_layout_known = True
                return

    def read(self, address: int, tensor: Any) -> _Storage:
        if not self._is_layout_known:
            return self._ask(tensor)
        seen = _StorageImpl.from_address(address)
        if not seen.data or seen.is_symbolic:
            return _NO_MEMORY
        known = self._by_deleter.get(seen.deleter)
        if known is None:
            known = self._by_deleter[seen.deleter] = self._ask(tensor)[3:]
        return _Storage(seen.data, seen.bytes, seen.is_resizable, *known)

    def read_alone(self, address: int) -> _Storage:
        """Of a storage without tensor, whose Python object cannot tell whether it is a lazy copy:
        nothing, unless its layout and the function that frees it are known."""
        known = None
        if self._is_layout_known:
            seen = _StorageImpl.from_address(address)
            known = self._by_deleter.get(seen.deleter)
        if known is None or seen.is_symbolic:
            return _NO_MEMORY
        return _Storage(seen.data, seen.bytes, seen.is_resizable, *known)

    def _ask(self, tensor: Any) -> _Storage:
        """The same from torch, which makes a Python object of the storage and keeps it."""
        storage = self._c.TensorBase.untyped_storage(tensor)
        base = self._c.StorageBase
        device = base.device.__get__(storage).type
        try:
            data = 0 if device == "meta" else address_of(tensor)
        except RuntimeError:  # a wrapper's
            data = 0
        return _Storage(
            data,
            int(base.nbytes(storage)) if data else 0,
            bool(base.resizable(storage)),
            bool(data and device == "cpu" and base.is_shared(storage)),
            bool(data and self._c._is_cow_tensor(tensor)),
        )


# ── reading ──────────────────────────────────────────────────────────────────


class _NodeKind(NamedTuple):
    name: str
    saved: tuple[tuple[str, str], ...]
    """Attribute and name of each thing that such a node saves."""
    has_variable: bool


_node_kinds: dict[type, _NodeKind] = {}
"""Of types that are never freed."""


def _node_kind(kind: type) -> _NodeKind:
    known = _node_kinds.get(kind)
    if known is not None:
        return known
    namespace = class_dict(kind)
    if _flags_of(kind) & _HEAP_TYPE:  # a custom Function's: all it saves is in one place
        return _NodeKind(class_name(kind), ((_RAW + "tensors", "tensors"),), False)
    saved = tuple((name, name[len(_RAW) :]) for name in namespace if name.startswith(_RAW))
    known = _node_kinds[kind] = _NodeKind(class_name(kind), saved, "variable" in namespace)
    return known


class _Reading:
    """One reading. Holds what it has met, so that no address is used twice, until it is over."""

    def __init__(self, c: Any, extras: Extras, turn: _Turn) -> None:
        self._c = c
        self._extras = extras
        self._turn = turn
        base = self._base = c.TensorBase
        self._get_cdata = base._cdata.__get__
        self._get_base = base._base.__get__
        self._get_grad_fn = base.grad_fn.__get__
        self._get_grad = base.grad.__get__
        self._retains_grad = base.retains_grad.__get__
        self._requires_grad = base.requires_grad.__get__
        self._get_shape = base.shape.__get__
        self._get_dtype = base.dtype.__get__
        self._storages = _Storages(c)
        self._storage_keys: dict[int, int] = {}
        """By address of a storage: that of its node, 0 if it owns no memory."""
        self._seen: dict[int, Any] = {}
        self._tensors: list[tuple[Any, str]] = []
        self._nodes: list[Any] = []
        self._words: dict[Any, str] = {}
        self.levels = 0
        """How deep the graphs were followed."""
        self._tensor_kinds: dict[int, tuple[str, bool]] = {}

    def read(self, found: list[Any], references_of_caller: int) -> None:
        tensors = [one for one in found if issubclass(type(one), self._base)]
        ours = _references_to([object()], 0) + references_of_caller
        others = [_references_to(tensors, at) - ours for at in range(len(tensors))]
        # One that nothing else refers to has gone since it was found. In torch before 2.13 its
        # Python object may be all that is left of it.
        held = [(one, count) for one, count in zip(tensors, others, strict=True) if count > 0]
        self._storages.learn([one for one, _ in held])
        # What Python code holds comes first: of a storage that is also saved, the tensor is shown.
        in_c = []
        for tensor, count in held:
            if count > (self._base._use_count(tensor) > 1):  # C++ keeps the Python object
                self._meet(tensor, TENSORS)
            else:
                in_c.append(tensor)
        self._follow()
        saved_types = _saved_tensor_types(self._c)
        for one in found:
            if type(one) in saved_types:
                self._read_saved_object(one)
        self._follow()
        if self._turn.is_first:  # what C++ alone holds may go as soon as another thread runs
            for tensor in in_c:
                self._meet(tensor, TENSORS)
            self._follow()
        self._read_storage_objects(found, ours)

    def _follow(self) -> None:
        while self._tensors or self._nodes:
            tensors, self._tensors = self._tensors, []
            for tensor, part in tensors:
                self._turn.go_on()
                with suppress(RuntimeError):  # one that the collector has emptied already
                    self._read_tensor(tensor, part)
            nodes, self._nodes = self._nodes, []
            self.levels += bool(nodes)
            if self.levels > _levels_left():
                self._extras.skipped[_LONG_GRAPHS] = _TOO_LONG
                return
            for node in nodes:
                self._turn.go_on()
                self._read_node(node)

    def _meet(self, tensor: Any, part: str) -> int:
        key = id(tensor)
        if key not in self._seen:
            self._seen[key] = tensor
            self._tensors.append((tensor, part))
        return key

    def _meet_node(self, node: Any) -> int:
        key = id(node)
        if key not in self._seen:
            self._seen[key] = node
            self._nodes.append(node)
        return key

    # ── one tensor ──

    def _read_tensor(self, tensor: Any, part: str) -> None:
        key, add_edge = id(tensor), self._extras.add_edge
        size = _TENSOR_BYTES
        address = self._storages.address_of(tensor)
        if address:
            storage = self._storage_keys.get(address)
            if storage is None:
                storage = self._storage_keys[address] = self._add_storage(address, tensor, part)
                size += _STORAGE_BYTES
            if storage:
                add_edge(key, storage, EdgeRole.STORAGE)
        grad_fn, grad = self._autograd_of(tensor)
        origin = self._get_base(tensor)
        if origin is not None:
            size += _VIEW_BYTES
            add_edge(key, self._meet(origin, part), EdgeRole.VIEW_BASE)
        elif grad_fn is not None or self._is_known_to_autograd(tensor, address):
            size += _AUTOGRAD_BYTES
        if grad_fn is not None:
            add_edge(key, self._meet_node(grad_fn), EdgeRole.GRAD_FN)
        if grad is not None:
            add_edge(key, self._meet(grad, part), EdgeRole.GRAD)
        name, words = self._in_words(tensor, grad_fn)
        self._extras.add_node(key, name, size, part=part)
        self._extras.described[key] = words

    def _is_known_to_autograd(self, tensor: Any, storage: int) -> bool:
        """True for what takes part in autograd, and for what `torch.tensor(...)` makes."""
        if storage:
            seen = _TensorImpl.from_address(self._get_cdata(tensor))
            if seen.storage == storage:
                return bool(seen.autograd)
        return bool(self._requires_grad(tensor))

    def _autograd_of(self, tensor: Any) -> tuple[Any, Any]:
        """Its `grad_fn` and its gradient."""
        try:
            grad_fn = self._get_grad_fn(tensor)
        except RuntimeError:  # a view that may no longer be edited in place
            return None, None
        # Asking a tensor inside a graph for its gradient makes torch warn.
        if grad_fn is None or self._retains_grad(tensor):
            return grad_fn, self._get_grad(tensor)
        return grad_fn, None

    def _add_storage(self, address: int, tensor: Any, part: str) -> int:
        """The address of its node; 0 if it owns no memory."""
        storage = self._storages.read(address, tensor)
        return self._add_memory(address, storage, device_of(tensor), part)

    def _add_memory(self, address: int, storage: _Storage, device: str | None, part: str) -> int:
        if not storage.data or storage.bytes <= 0:
            return 0
        if device is not None:
            size = rounded(storage.bytes)
            self._extras.device_addresses.add(storage.data)
            self._extras.add_node(address, _STORAGE_NAME, size, part=part, device=device)
            return address
        if storage.is_in_shared_memory and part == TENSORS:
            part = SHARED_MEMORY
        elif not storage.is_resizable:
            part = ARRAYS
        # Memory that others may have too has one address for all of them.
        is_own = storage.is_resizable and not storage.is_lazy_copy
        key = address if is_own else storage.data
        self._extras.add_node(key, _STORAGE_NAME, storage.bytes, part=part)
        return key

    def _read_storage_objects(self, found: list[Any], ours: int) -> None:
        """Storages with a Python object: the program's, or one that torch keeps beside them."""
        storages = [one for one in found if issubclass(type(one), self._c.StorageBase)]
        for at in range(len(storages)):
            if self._turn.is_first and _references_to(storages, at) > ours:
                self._read_storage_object(storages[at])

    def _read_storage_object(self, storage: Any) -> None:
        address = int(self._c.StorageBase._cdata.__get__(storage))
        key = self._storage_keys.get(address)
        if key is None:  # no tensor has it any more
            device = self._c.StorageBase.device.__get__(storage)
            name = None if device.type == "cpu" else str(device)
            memory = self._storages.read_alone(address)
            key = self._storage_keys[address] = self._add_memory(address, memory, name, TENSORS)
        if key:
            self._extras.add_edge(id(storage), key, EdgeRole.STORAGE)
            self._extras.add_edge(key, id(storage), EdgeRole.STORAGE)

    def _in_words(self, tensor: Any, grad_fn: Any) -> tuple[str, str]:
        """Name of its class; `Tensor [64, 512] float32, grad_fn MeanBackward0`."""
        kind = type(tensor)
        known = self._tensor_kinds.get(id(kind))
        if known is None:
            known = self._tensor_kinds[id(kind)] = (class_name(kind), _dispatches_itself(kind))
        name, is_opaque = known
        if is_opaque:
            return name, name
        try:
            shape = self._get_shape(tensor)
        except RuntimeError:  # a nested tensor has no one shape
            return name, name
        if not _INTEGERS.issuperset(map(type, shape)):  # of a tracer's: asking more would be traced
            return name, name
        dtype = self._get_dtype(tensor)
        key = (name, shape, dtype, type(grad_fn))
        words = self._words.get(key)
        if words is None:
            words = f"{name} {list(shape)} {str(dtype).removeprefix('torch.')}"
            if grad_fn is not None:
                words += f", grad_fn {class_name(type(grad_fn))}"
            self._words[key] = words
        return name, words

    # ── one node ──

    def _read_node(self, node: Any) -> None:
        key, extras = id(node), self._extras
        kind = _node_kind(type(node))
        extras.add_node(key, kind.name, NODE_BYTES, part=NODES)
        for attribute, name in kind.saved:
            try:
                raw = getattr(node, attribute)
            except RuntimeError:  # freed by the backward pass
                continue
            for one in raw if type(raw) is tuple else (raw,):
                self._read_saved(key, name, one)
        if kind.has_variable:
            try:
                leaf = node.variable
            except RuntimeError:
                leaf = None
            if leaf is not None:
                extras.add_edge(key, self._meet(leaf, TENSORS), EdgeRole.VARIABLE)
        for following, _ in node.next_functions:
            if following is not None:
                extras.add_edge(key, self._meet_node(following), EdgeRole.NEXT)

    def _read_saved(self, node: int, name: str, raw: Any) -> None:
        try:
            data = raw.data
            # A torch without `unpack_hook` (before 2.11) hides what the hook's closure keeps.
            hook = getattr(raw, "unpack_hook", None)
        except (RuntimeError, AttributeError):  # freed
            return
        if data is None:
            return
        if issubclass(type(data), self._base):
            target = self._meet(data, SAVED)
        else:
            target = id(data)
            if sys.getrefcount(data) <= _ONLY_IN_C:
                self._add_packed(data)
        self._extras.add_edge(node, target, EdgeRole.SAVED, name)
        if hook is not None:
            self._extras.add_edge(node, id(hook), EdgeRole.HOOK)

    def _read_saved_object(self, raw: Any) -> None:
        """A saved tensor in Python's own hands: `torch.utils.checkpoint` keeps arguments so."""
        seen = _SavedObject.from_address(id(raw))
        if seen.value and seen.value == seen.owned:
            self._read_saved(id(raw), "", raw)

    def _add_packed(self, thing: Any) -> None:
        """What a pack hook made and only the node holds. The walk has it if the collector does."""
        if gc.is_tracked(thing):
            return
        kind, key = type(thing), id(thing)
        array = getattr(sys.modules.get("numpy"), "ndarray", None)
        if kind is tuple:
            self._extras.add_node(key, "tuple", sys.getsizeof(thing), part=PYTHON)
            for item in thing:
                self._extras.add_edge(key, id(item), EdgeRole.ITEM)
                if sys.getrefcount(item) <= _ONLY_IN_C:
                    self._add_packed(item)
        elif array is not None and kind is array:
            size = object.__sizeof__(thing) + (thing.nbytes if thing.flags.owndata else 0)
            self._extras.add_node(key, "ndarray", size, part=ARRAYS)
            if thing.base is not None:
                self._extras.add_edge(key, id(thing.base), EdgeRole.BASE)
                self._add_packed(thing.base)
        elif kind is bytes or kind is bytearray or kind is str:
            self._extras.add_node(key, kind.__name__, sys.getsizeof(thing), part=PYTHON)


def _references_to(things: list[Any], at: int) -> int:
    """References to one thing in a list, with the same few of our own each time."""
    thing = things[at]
    return sys.getrefcount(thing)


def _dispatches_itself(kind: type) -> bool:
    """True where asking for a shape would run code of the program's."""
    for base in mro_of(kind):
        if "__torch_dispatch__" in class_dict(base):
            return base is not sys.modules["torch"].Tensor
    return False
