"""What an autograd graph keeps alive, read without touching it. Never imports torch itself.

The garbage collector does not see the nodes PyTorch builds in C++, nor what they have saved for
the backward pass, so a kept loss looks like 80 bytes to it. This module reads both:

- only `_raw_saved_x` with its `data` and `unpack_hook`. The friendlier `_saved_x` fires unpack
  hooks, runs a checkpointed forward again and raises after an in-place edit;
- only through the descriptors of `torch._C.TensorBase`, with torch functions switched off, for
  the program's tensor classes may have overridden everything else.

A node as Python sees it keeps all nodes behind it alive, and a tensor its memory: nothing here
outlives the call except what is handed back, which the caller must drop at once. What remains is
a Python face (80 bytes for a tensor, 64 for a storage, 40 for a node) on each thing that had none
before: torch 2.13 keeps it as long as the thing itself, and frees it then. So look at samples of
what leaks, not at all of it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import compress
from typing import Any, NamedTuple

from leakscope.observe.devices import device_of, rounded
from leakscope.observe.quiet import quiet_collector

_RAW = "_raw_saved_"
HEAP_TYPE = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: a class made while running, which our caches must not keep alive."""

NODE_BYTES = 640
"""One graph node in C++, with its edges. Measured as malloc's growth per node kept after
`backward()`, torch 2.13: view 560, add 575, relu 592, mul 712, mm 824 bytes."""

flags_of = type.__dict__["__flags__"].__get__
mro_of = type.__dict__["__mro__"].__get__
namespace_of = type.__dict__["__dict__"].__get__
"""As `kind.__flags__`, `kind.__mro__` and `kind.__dict__`, with no say for a metaclass."""

_names_by_type: dict[type, tuple[str, ...]] = {}
"""Names of the saved things, by node type. Only of types that are never freed."""


class Saved(NamedTuple):
    """One thing a node has put away for the backward pass, as it lies there."""

    name: str
    """As PyTorch calls it: mat1, result, self; `tensors` for one of a Function's own."""
    data: Any
    """The tensor, or whatever a pack hook made of it."""
    unpack_hook: Any
    """Held by the node as well, with all that its closure holds; None without hooks."""


class SavedTensor(NamedTuple):
    """A saved tensor in words."""

    node: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int


class Graph(NamedTuple):
    """What the nodes reached from some roots hold. Keeps objects alive: drop it at once."""

    nodes: int
    is_cut: bool
    """True when there were more nodes than wanted: everything else is then a lower bound."""
    saved: dict[int, int]
    """Bytes by storage, so that views of one storage count once."""
    objects: list[Any]
    """What nodes hold of the Python heap: the values a Function put on its ctx, what pack hooks
    made, and the unpack hooks. A walk of the heap can go on from here."""
    leaves: list[Any]
    """The tensors that gradients would be accumulated in: parameters, mostly."""
    devices: dict[int, str]
    """Of the storages that are not in the host's memory: where they are."""
    first: SavedTensor | None
    """The saved tensor nearest to the roots that is no parameter, for drawing."""


def count_nodes(root: Any, most: int) -> int:
    """How many nodes can be reached from a `grad_fn`; counts no further than `most`."""
    if root is None:
        return 0
    seen = {root}
    with quiet_collector(), suppress(RuntimeError, AttributeError):
        _reach([root], seen, most)
    return min(len(seen), most)


def reachable_nodes(roots: Iterable[Any], most: int) -> set[Any]:
    """All nodes from these on, at most so many. The set keeps the graphs alive: drop it at once."""
    seen = {root for root in roots if root is not None}
    with quiet_collector():
        _reach(list(seen), seen, most)
    return seen


def _reach(order: list[Any], seen: set[Any], most: int) -> None:
    """Nodes hash and compare by identity: their types are torch's, never the program's."""
    for reached in order:  # grows while it is read: breadth first
        if len(seen) >= most:
            return
        for node, _ in reached.next_functions:
            if node is not None and node not in seen:
                seen.add(node)
                order.append(node)


def walk(roots: Iterable[Any], *, most_nodes: int) -> Graph:
    """Everything the graphs behind these `grad_fn` hold, nearest first."""
    gathered = _Gathered()
    if "torch" not in sys.modules:
        return gathered.as_graph()
    with quiet_collector(), without_torch_functions():
        try:
            gathered.follow(roots, most_nodes)
        except Exception:  # noqa: BLE001 - the program goes on, with what was seen until here
            gathered.is_cut = True
    return gathered.as_graph()


class _Gathered:
    """A graph while it is being read."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()
        self.is_cut = False
        self.saved: dict[int, int] = {}
        self.objects: list[Any] = []
        self.leaves: list[Any] = []
        self.devices: dict[int, str] = {}
        self.first: SavedTensor | None = None

    def as_graph(self) -> Graph:
        return Graph(
            len(self.seen),
            self.is_cut,
            self.saved,
            self.objects,
            self.leaves,
            self.devices,
            self.first,
        )

    def follow(self, roots: Iterable[Any], most_nodes: int) -> None:
        order: list[Any] = []
        self._line_up((root for root in roots if root is not None), order, most_nodes)
        for node in order:  # grows while it is read: breadth first
            for saved in saved_by(node):
                self._add(node, saved)
            self.objects.extend(ctx_values(node))
            leaf = leaf_of(node)
            if leaf is not None:
                self.leaves.append(leaf)
            self._line_up(next_nodes(node), order, most_nodes)

    def _line_up(self, nodes: Iterable[Any], order: list[Any], most_nodes: int) -> None:
        for node in nodes:
            if node in self.seen:
                continue
            if len(self.seen) >= most_nodes:
                self.is_cut = True
                return
            self.seen.add(node)
            order.append(node)

    def _add(self, node: Any, saved: Saved) -> None:
        if saved.unpack_hook is not None:
            self.objects.append(saved.unpack_hook)
        if not is_tensor_type(type(saved.data)):
            self.objects.append(saved.data)
            return
        storage = storage_of(saved.data)
        if storage is not None:
            key, size = storage
            self.saved[key] = size
            device = device_of(saved.data)
            if device is not None:
                self.devices[key] = device
                self.saved[key] = rounded(size)
            if self.first is None and not _is_parameter(saved.data):
                self.first = _in_words(node, saved, size)


# ── one node ─────────────────────────────────────────────────────────────────


def is_node_type(kind: type) -> bool:
    """True for the types of `grad_fn`. Those of C++ nodes have no base in common but a shape."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    return issubclass(kind, torch._C._FunctionBase) or (
        not issubclass(kind, type) and "next_functions" in namespace_of(kind)
    )


def next_nodes(node: Any) -> list[Any]:
    """The nodes this one passes gradients to, as often as it does."""
    return [following for following, _ in node.next_functions if following is not None]


def saved_by(node: Any) -> Iterator[Saved]:
    """What the node still holds for the backward pass. Nothing after it has run."""
    for name in _saved_names(type(node)):
        try:
            raw = getattr(node, name)
        except RuntimeError:  # freed by the backward pass
            continue
        for one in raw if type(raw) is tuple else (raw,):
            saved = read_saved(name[len(_RAW) :], one)
            if saved is not None:
                yield saved


def read_saved(name: str, raw: Any) -> Saved | None:
    """What is inside a `SavedTensor` of torch's; None once it was freed."""
    with suppress(RuntimeError, AttributeError):
        data = raw.data
        if data is not None:
            # A torch without `unpack_hook` (before 2.11) hides what a hook's closure keeps.
            return Saved(name, data, getattr(raw, "unpack_hook", None))
    return None


def ctx_values(node: Any) -> list[Any]:
    """What a custom Function has put on its ctx. C++ nodes have no such place."""
    kind = type(node)
    if not flags_of(kind) & HEAP_TYPE:
        return []
    return [
        value
        for referent in gc.get_referents(node)
        if type(referent) is dict
        for value in referent.values()
    ]


def leaf_of(node: Any) -> Any:
    """The tensor that an AccumulateGrad node adds gradients to; None for other nodes."""
    if "variable" in namespace_of(type(node)):
        with suppress(RuntimeError):
            return node.variable
    return None


def _saved_names(kind: type) -> tuple[str, ...]:
    known = _names_by_type.get(kind)
    if known is None:
        if flags_of(kind) & HEAP_TYPE:  # a custom Function's: all it saves is in one place
            return (_RAW + "tensors",)
        known = tuple(name for name in namespace_of(kind) if name.startswith(_RAW))
        _names_by_type[kind] = known
    return known


# ── one tensor ───────────────────────────────────────────────────────────────
# All of these are for use inside `without_torch_functions()`.


def is_tensor_type(kind: type) -> bool:
    """By type and never by `isinstance`, which runs the `__class__` of lazy proxies."""
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(kind, torch._C.TensorBase)


def storage_of(tensor: Any) -> tuple[int, int] | None:
    """(key, bytes) of the memory under a tensor; None where there is none to count.

    Meta and Fake tensors tell a size and own nothing; wrappers with their own dispatch neither,
    what they wrap is on the Python side. Sparse and mkldnn tensors have no storage at all.
    """
    storage = storage_face(tensor)
    return None if storage is None else (storage._cdata, storage.nbytes())


def storage_face(tensor: Any) -> Any:
    """The `UntypedStorage` of a tensor that owns memory, else None."""
    torch = sys.modules["torch"]
    try:
        storage = torch._C.TensorBase.untyped_storage(tensor)
        if storage.device.type == "meta":
            return None
        if _dispatches_itself(type(tensor), torch) and not torch._C._is_cow_tensor(tensor):
            # Raises for a wrapper, whose storage is a pretence. Not asked of others: it would
            # make a lazily cloned tensor copy its memory.
            storage.data_ptr()
    except (RuntimeError, AttributeError):  # NotImplementedError is one of the first
        return None
    return storage


def references_in_c(thing: Any) -> int:
    """How many refer to a tensor or a storage in C++; its own Python object is one of them."""
    torch = sys.modules["torch"]
    if is_tensor_type(type(thing)):
        return int(torch._C.TensorBase._use_count(thing))
    return int(torch._C._storage_Use_Count(thing._cdata))


def neighbours(tensor: Any) -> Iterator[tuple[str, Any]]:
    """What a tensor refers to in C++, beside its storage."""
    base = sys.modules["torch"]._C.TensorBase
    with suppress(RuntimeError):  # a view that may no longer be edited in place
        yield ".grad_fn", base.grad_fn.__get__(tensor)
    yield "._base", base._base.__get__(tensor)
    # Asking a tensor inside a graph for its gradient makes torch warn.
    if base.is_leaf.__get__(tensor) or base.retains_grad.__get__(tensor):
        yield ".grad", base.grad.__get__(tensor)


def live_roots() -> Iterator[tuple[Any, Any]]:
    """(holder, node) for every tensor and node that the collector knows of."""
    base = sys.modules["torch"]._C.TensorBase
    objects = gc.get_objects()
    kinds = list(map(type, objects))
    # By id: the hash of a class is the business of its metaclass, which may be the program's.
    ids = list(map(id, kinds))
    by_id = dict(zip(ids, kinds, strict=True))
    wanted = {key for key, kind in by_id.items() if is_tensor_type(kind) or is_node_type(kind)}
    for thing in compress(objects, map(wanted.__contains__, ids)):
        if is_tensor_type(type(thing)):
            with suppress(RuntimeError):
                yield thing, base.grad_fn.__get__(thing)
        else:
            yield thing, thing


def describe_tensor(tensor: Any) -> str:
    """`Tensor [64, 512] float32`; the class alone where asking for more could run its code."""
    kind = type(tensor)
    torch = sys.modules["torch"]
    if _dispatches_itself(kind, torch):
        return kind.__name__
    base = torch._C.TensorBase
    try:
        shape = list(base.shape.__get__(tensor))
    except RuntimeError:  # a nested tensor has no one shape
        return kind.__name__
    return f"{kind.__name__} {shape} {_short(base.dtype.__get__(tensor))}"


def without_torch_functions() -> AbstractContextManager[Any]:
    """Keeps the `__torch_function__` of the program's classes and modes from running for us."""
    torch = sys.modules.get("torch")
    return nullcontext() if torch is None else torch._C.DisableTorchFunction()


def _dispatches_itself(kind: type, torch: Any) -> bool:
    for base in mro_of(kind):
        if "__torch_dispatch__" in namespace_of(base):
            return base is not torch.Tensor
    return False


def _is_parameter(tensor: Any) -> bool:
    base = sys.modules["torch"]._C.TensorBase
    return bool(base.is_leaf.__get__(tensor) and base.requires_grad.__get__(tensor))


def _in_words(node: Any, saved: Saved, size: int) -> SavedTensor:
    base = sys.modules["torch"]._C.TensorBase
    shape: tuple[int, ...] = ()
    if not _dispatches_itself(type(saved.data), sys.modules["torch"]):
        with suppress(RuntimeError):
            shape = tuple(base.shape.__get__(saved.data))
    dtype = _short(base.dtype.__get__(saved.data))
    return SavedTensor(type(node).__name__, saved.name, shape, dtype, size)


def _short(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
