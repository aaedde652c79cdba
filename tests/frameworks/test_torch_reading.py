"""Storages, graphs and gradients are read whole and as large as they are, and nothing notices."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakscope.frameworks import torch_edges
from leakscope.frameworks.torch_edges import NODE_BYTES, TorchEdges
from leakscope.observe.heap.edges import Extras
from leakscope.record.snapshot_file import EdgeRole, ExtraNode

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = torch.nn
checkpoint = torch.utils.checkpoint.checkpoint
hooks = torch.autograd.graph.saved_tensors_hooks

pytestmark = pytest.mark.torch


def look() -> Extras:
    """Read everything, as a snapshot does."""
    edges = TorchEdges(references_of_caller=1)
    assert edges.why_not_now() == ""
    wanted = edges.wanted()
    objects = gc.get_objects()
    # The walker finds what the collector does not track, too.
    within = (item for one in objects if type(one) is list for item in one)
    found = [one for one in objects if issubclass(type(one), wanted)]
    found += [one for one in within if type(one) is torch._C._autograd.SavedTensor]
    del objects, within
    extras = Extras()
    edges.read(found, extras)
    assert extras.skipped == {}
    return extras


def read(*tensors: Any) -> Extras:
    """Read these alone."""
    extras = Extras()
    TorchEdges(references_of_caller=2).read(list(tensors), extras)
    assert extras.skipped == {}
    return extras


def edges_of(extras: Extras, thing: Any) -> dict[tuple[EdgeRole, str], list[int]]:
    """What leads out of an object, or of an address."""
    key = thing if type(thing) is int else id(thing)
    found: dict[tuple[EdgeRole, str], list[int]] = {}
    for edge in extras.edges:
        if edge.source == key:
            found.setdefault((EdgeRole(edge.role), edge.name), []).append(edge.target)
    return found


def only(extras: Extras, thing: Any, role: EdgeRole, name: str = "") -> ExtraNode:
    (target,) = edges_of(extras, thing)[role, name]
    return extras.nodes[target]


def storage_of(extras: Extras, thing: Any) -> ExtraNode:
    return only(extras, thing, EdgeRole.STORAGE)


# ── sizes: what only a loss leads to is what malloc gets back ────────────────


class _Mallinfo(ctypes.Structure):
    _fields_ = tuple((f"field{place}", ctypes.c_size_t) for place in range(10))


def in_use() -> int:
    """Bytes that malloc has given out."""
    call = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if call is None:
        pytest.skip("this allocator keeps no counters")
    call.restype = _Mallinfo
    info = call()
    return int(info.field7) + int(info.field4)


def reachable(start: Iterable[Any], extras: Extras) -> set[int]:
    """Addresses that some objects lead to, through Python and through C++."""
    objects = {id(one): one for one in gc.get_objects()}
    targets: dict[int, list[int]] = {}
    for edge in extras.edges:
        targets.setdefault(edge.source, []).append(edge.target)
    seen: set[int] = set()
    waiting = list(start)
    while waiting:
        thing = waiting.pop()
        key = thing if type(thing) is int else id(thing)
        if key not in seen:
            seen.add(key)
            waiting += targets.get(key, ())
            waiting += _referents(objects.get(key, thing))
    return seen


def _referents(thing: Any) -> list[Any]:
    around = thing.__globals__ if type(thing) is FunctionType else None
    return [
        one
        for one in gc.get_referents(thing)
        if not issubclass(type(one), (int, type, ModuleType)) and one is not around
    ]


def predicted(loss: Any, beside: Any) -> int:
    """C++ memory that only the loss leads to."""
    extras = look()
    own = reachable([loss], extras) - reachable([beside], extras)
    return sum(node.bytes for key, node in extras.nodes.items() if key in own)


Made = tuple[Any, object]
"""A loss, and what the program holds beside it."""


def _mlp() -> Made:
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.Tanh())
    inputs = torch.randn(1024, 64)
    return model(inputs).pow(2).mean(), (model, inputs)


def _transformer() -> Made:
    layer = nn.TransformerEncoderLayer(96, 4, 192, batch_first=True)
    model = nn.TransformerEncoder(layer, 2)
    inputs = torch.randn(16, 128, 96)
    return model(inputs).mean(), (model, inputs)


def _lstm() -> Made:
    model, inputs, state = nn.LSTM(64, 128), torch.randn(10, 128, 64), None
    for _ in range(5):
        outputs, state = model(inputs, state)  # never detached
        loss = outputs.pow(2).mean()
    return loss, (model, inputs)


class Saving(torch.autograd.Function):  # type: ignore[misc, name-defined]
    """Keeps tensors in every place a Function has."""

    @staticmethod
    def forward(ctx: Any, given: Any, weight: Any) -> Any:
        product = given @ weight
        ctx.save_for_backward(given, product)
        ctx.beside = [product.sin(), {"deep": product.cos()}]
        ctx.weight = weight
        return product.exp()


def _custom() -> Made:
    weight, inputs = torch.randn(512, 512, requires_grad=True), torch.randn(512, 512)
    return Saving.apply(inputs * 2, weight).sum(), (weight, inputs)


def _checkpointed(*, is_reentrant: bool) -> Callable[[], Made]:
    def make() -> Made:
        model = nn.Sequential(*(nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(4)))
        inputs = torch.randn(512, 512, requires_grad=True)
        hidden = inputs
        for layer in model:
            hidden = checkpoint(layer, hidden, use_reentrant=is_reentrant)
        return hidden.mean(), (model, inputs)

    return make


def _hooked(pack: Callable[[Any], Any]) -> Callable[[], Made]:
    def make() -> Made:
        model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512))
        inputs = torch.randn(1024, 64)
        with hooks(pack, torch.as_tensor):
            loss = model(inputs).exp().mean()
        return loss, (model, inputs)

    return make


GRAPHS: dict[str, Callable[[], Made]] = {
    "mlp": _mlp,
    "transformer": _transformer,
    "lstm": _lstm,
    "custom function": _custom,
    "checkpoint, reentrant": _checkpointed(is_reentrant=True),
    "checkpoint": _checkpointed(is_reentrant=False),
    "packed to arrays": _hooked(lambda tensor: tensor.detach().numpy().copy()),
    "packed to pairs": _hooked(lambda tensor: ("packed", tensor.detach().numpy().copy())),
    "packed to copies": _hooked(lambda tensor: tensor.detach().clone()),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_what_only_a_loss_leads_to_is_what_malloc_gets_back(name: str) -> None:
    """Breaks when something a graph keeps is not seen, or is counted twice."""
    GRAPHS[name]()  # what is set up once
    loss, beside = GRAPHS[name]()
    gc.collect()
    said = predicted(loss, beside)
    before = in_use()
    del loss
    freed = before - in_use()
    assert freed > 1_000_000
    assert said == pytest.approx(freed, rel=0.01)
    assert beside is not None


MAKERS: dict[str, Callable[[], Any]] = {
    "tensor": lambda: torch.tensor([0.5] * 100),
    "one number": lambda: torch.tensor(0.5),
    "zeros": lambda: torch.zeros(100),
    "parameter": lambda: nn.Parameter(torch.zeros(100)),
    "detached": lambda: nn.Parameter(torch.zeros(100)).detach().clone(),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_small_tensor_is_as_large_as_malloc_made_it(name: str) -> None:
    """Breaks when the layout of tensors changes: most of a kept number is beside its data."""
    make = MAKERS[name]
    kept = [make() for _ in range(500)] + [None] * 500
    before = in_use()
    for place in range(500, 1000):
        kept[place] = make()
    each = (in_use() - before) / 500
    extras = look()
    said = extras.nodes[id(kept[700])].bytes + storage_of(extras, kept[700]).bytes
    assert said == pytest.approx(each, rel=0.1)


@pytest.mark.parametrize(
    "carry",
    [
        lambda state, parameter: 0.9 * state + 0.1 * parameter,
        lambda state, parameter: torch.lerp(state, parameter, 0.1),
        lambda state, parameter: torch.tanh(state),
        lambda state, parameter: state.mul(0.9),
    ],
)
def test_a_state_that_carries_its_graph_is_as_large_as_malloc_made_it(
    carry: Callable[[Any, Any], Any],
) -> None:
    """Breaks when a number that a graph has saved is taken for eight bytes: it is a tensor."""
    parameter = nn.Parameter(torch.randn(48, 32))
    state = parameter * 1.0
    for _ in range(20):
        state = carry(state, parameter)
    short, before = predicted(state, parameter), in_use()
    for _ in range(300):
        state = carry(state, parameter)
    grown = in_use() - before
    assert predicted(state, parameter) - short == pytest.approx(grown, rel=0.2)


# ── what is read ─────────────────────────────────────────────────────────────


def test_a_tensor_in_a_graph() -> None:
    """Breaks when an edge is lost that a report names."""
    weight = torch.ones(512, 4, requires_grad=True)
    batch = torch.randn(64, 512)
    loss = (batch @ weight).mean()
    loss.backward(retain_graph=True)
    extras = look()
    assert extras.described[id(loss)] == "Tensor [] float32, grad_fn MeanBackward0"
    assert extras.described[id(batch)] == "Tensor [64, 512] float32"
    mean = only(extras, loss, EdgeRole.GRAD_FN)
    assert mean == ExtraNode(id(loss.grad_fn), "MeanBackward0", NODE_BYTES, "", "nodes")
    product = only(extras, mean.address, EdgeRole.NEXT)
    assert product.type == "MmBackward0"
    assert edges_of(extras, product.address)[EdgeRole.SAVED, "self"] == [id(batch)]
    leaf = only(extras, product.address, EdgeRole.NEXT)
    assert edges_of(extras, leaf.address) == {(EdgeRole.VARIABLE, ""): [id(weight)]}
    storage = storage_of(extras, batch)
    assert (storage.type, storage.bytes, storage.part) == ("UntypedStorage", 131_072, "tensors")
    gradient = only(extras, weight, EdgeRole.GRAD)
    assert (gradient.type, gradient.part) == ("Tensor", "tensors")
    assert storage_of(extras, gradient.address).bytes == 512 * 4 * 4
    assert extras.described[gradient.address] == "Tensor [512, 4] float32"


@st.composite
def sums(draw: st.DrawFn) -> list[tuple[int, int]]:
    """For each new tensor, the two earlier ones that it adds up; two leaves come first."""
    size = draw(st.integers(1, 30))
    earlier = [st.integers(0, place + 1) for place in range(size)]
    return [(draw(one), draw(one)) for one in earlier]


@given(sums())
@settings(max_examples=25, deadline=None)
def test_every_node_is_there_once(pairs: list[tuple[int, int]]) -> None:
    """Breaks when a node reached on two ways counts twice, or one is left out."""
    tensors = [torch.ones(1, requires_grad=True) for _ in range(2)]
    for left, right in pairs:
        tensors.append(tensors[left] + tensors[right])
    expected, waiting = set(), [len(tensors) - 1]
    while waiting:
        place = waiting.pop()
        expected.add(place)
        waiting += () if place < 2 else pairs[place - 2]
    extras = read(tensors[-1])
    nodes = [node for node in extras.nodes.values() if node.part == "nodes"]
    assert len(nodes) == len(expected)
    following = [edge for edge in extras.edges if edge.role == EdgeRole.NEXT]
    assert len(following) == 2 * sum(place >= 2 for place in expected)


def test_views_share_a_storage() -> None:
    """Breaks when a small view hides the large tensor it keeps, or one memory counts twice."""
    rows = torch.randn(100, 100)
    kept = [rows[3], rows[5].detach()]
    with torch.inference_mode():
        kept.append(rows[7])
    extras = look()
    assert [storage_of(extras, one).bytes for one in kept] == [40_000] * 3
    assert len({storage_of(extras, one).address for one in [rows, *kept]}) == 1
    assert edges_of(extras, kept[0])[EdgeRole.VIEW_BASE, ""] == [id(rows)]


def test_gradients_that_python_never_saw() -> None:
    """Breaks when gradients count only after the program has read them."""
    weights = [torch.ones(1000, requires_grad=True) for _ in range(5)]
    inner = weights[0] * 2
    inner.retain_grad()
    (inner.sum() + sum(one.sum() for one in weights)).backward()
    extras = look()
    gradients = [only(extras, one, EdgeRole.GRAD) for one in [inner, *weights]]
    assert [storage_of(extras, one.address).bytes for one in gradients] == [4000] * 6


@pytest.mark.filterwarnings("error")
def test_no_warning_for_the_gradient_of_a_tensor_inside_a_graph() -> None:
    inner = torch.ones(3, requires_grad=True) * 2
    assert (EdgeRole.GRAD, "") not in edges_of(look(), inner)


def test_parts_stay_the_same_from_look_to_look() -> None:
    """Breaks when the Python objects that a look leaves behind make saved tensors the program's."""
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
    kept = [model(torch.randn(32, 64)).exp().sum() for _ in range(3)]
    sizes = []
    for _ in range(3):
        nodes = look().nodes.values()
        parts = ("tensors", "saved", "nodes")
        sizes.append([sum(one.bytes for one in nodes if one.part == part) for part in parts])
    assert sizes[0] == sizes[1] == sizes[2]
    assert sizes[0][1] > 3 * 3 * 32 * 64 * 4
    assert len(kept) == 3


def test_a_storage_that_is_saved_and_in_use_is_the_tensors() -> None:
    """Breaks when a batch that the program holds counts as saved for backward."""
    weight = torch.ones(8, 8, requires_grad=True)
    batch, other = torch.randn(8, 8), torch.randn(8, 8)
    loss = ((batch @ weight) @ other).sum()
    node = loss.grad_fn.next_functions[0][0]
    del other
    extras = look()
    assert storage_of(extras, batch).part == "tensors"
    (saved,) = edges_of(extras, node)[EdgeRole.SAVED, "mat2"]
    assert (extras.nodes[saved].part, storage_of(extras, saved).part) == ("saved", "saved")


def test_shared_memory_and_memory_of_arrays() -> None:
    """Breaks when tensors of another process, or memory of an array, look like any other."""
    shared = torch.zeros(1000).share_memory_()
    array = np.zeros(1000)
    kept = [torch.from_numpy(array), torch.from_numpy(array)[10:]]
    extras = look()
    assert storage_of(extras, shared).part == "shared memory"
    assert storage_of(extras, shared).bytes == 4000
    address = array.__array_interface__["data"][0]
    memory = ExtraNode(address, "UntypedStorage", 8000, "", "arrays")
    assert [storage_of(extras, one) for one in kept] == [memory] * 2


def test_lazy_copies_share_their_memory_and_stay_lazy() -> None:
    """Breaks when a look makes a lazily cloned tensor copy its memory, or counts it twice."""
    first = torch.ones(1000)
    copies = [first, torch._lazy_clone(first), torch._lazy_clone(first)]
    extras = look()
    assert len({storage_of(extras, one).address for one in copies}) == 1
    assert all(torch._C._is_cow_tensor(one) for one in copies)


def test_hooks_and_what_they_made() -> None:
    """Breaks when the Python side of a graph falls out of sight."""
    inputs = torch.ones(3, requires_grad=True)
    packed: list[Any] = []

    def pack(tensor: Any) -> Any:
        packed.append({"shape": tuple(tensor.shape)})
        return packed[-1]

    def unpack(box: Any) -> Any:
        raise AssertionError("unpacked")

    with hooks(pack, unpack):
        hooked = inputs.exp()
    found = edges_of(look(), hooked.grad_fn)
    assert found[EdgeRole.SAVED, "result"] == [id(packed[0])]
    assert found[EdgeRole.HOOK, ""] == [id(unpack)]


def test_custom_functions() -> None:
    result = Saving.apply(torch.ones(4, 4), torch.randn(4, 4, requires_grad=True))
    extras = look()
    node = only(extras, result, EdgeRole.GRAD_FN)
    assert (node.address, node.type) == (id(result.grad_fn), "SavingBackward")
    assert len(edges_of(extras, node.address)[EdgeRole.SAVED, "tensors"]) == 2


class Doubling(torch.autograd.Function):  # type: ignore[misc, name-defined]
    @staticmethod
    def forward(ctx: Any, given: Any) -> Any:
        ctx.save_for_backward(given)
        return given * 2

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0] * 2


def test_a_saved_tensor_that_is_no_longer_there_is_not_read() -> None:
    """Breaks when the handle of a saved tensor is followed into a node that was freed: a crash."""
    leaf = torch.ones(1000, requires_grad=True)
    handles = [leaf.exp().grad_fn._raw_saved_result for _ in range(10)]
    extras = Extras()
    TorchEdges(1).read(handles, extras)
    assert (extras.skipped, extras.edges) == ({}, [])


def test_after_backward_only_nodes_are_left() -> None:
    """Breaks when freed tensors raise, or are counted still."""
    loss = Doubling.apply(torch.ones(4, 4, requires_grad=True).exp()).sum()
    counts = []
    for is_freed in (False, True):
        if is_freed:
            loss.backward()
        roles = [edge.role for edge in read(loss).edges]
        counts.append((roles.count(EdgeRole.NEXT), roles.count(EdgeRole.SAVED)))
    assert counts == [(3, 2), (3, 0)]


def test_names_of_saved_tensors() -> None:
    """Breaks when a new torch renames what is read: nothing would be seen then."""
    loss = torch.ones(2, 2, requires_grad=True) @ torch.ones(2, 2)
    found = edges_of(look(), loss.grad_fn)
    assert [name for role, name in found if role is EdgeRole.SAVED] == ["mat2"]


def test_a_chain_of_gradients_is_followed_to_its_end() -> None:
    """Breaks when a long chain runs into the limit of recursion."""
    first = last = torch.zeros(3)
    for _ in range(3000):
        last.grad = torch.zeros(3)
        last = last.grad
    assert sum(edge.role == EdgeRole.GRAD for edge in read(first).edges) == 3000


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a program without torch is asked for tensors, or has torch imported for it."""
    monkeypatch.delitem(sys.modules, "torch")
    edges = TorchEdges()
    assert (edges.wanted(), edges.why_not_now()) == ((), "")
    edges.read([], Extras())
    assert "torch" not in sys.modules


# ── storages ─────────────────────────────────────────────────────────────────


class Wrapper(torch.Tensor):  # type: ignore[misc, name-defined]
    inner: Any

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("an operator ran")


def odd_tensors() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # beta features say so
        with torch._subclasses.FakeTensorMode():
            fake = torch.empty(1000)
        return {
            "meta": torch.empty(1000, device="meta"),
            "fake": fake,
            "sparse": torch.eye(3).to_sparse(),
            "compressed": torch.eye(3).to_sparse_csr(),
            "mkldnn": torch.eye(3).to_mkldnn(),
            "nested": torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged),
            "wrapper": Wrapper(torch.ones(4)),
            "lazy": nn.LazyLinear(3).weight,
            "empty": torch.empty(0),
        }


ODD = ("meta", "fake", "sparse", "compressed", "mkldnn", "nested", "wrapper", "lazy", "empty")


@pytest.fixture(params=[True, False], ids=["by layout", "by asking"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Storages are read from memory where their layout is known, else from torch."""
    read(*(torch.zeros(size) for size in (10, 20, 30)))
    assert torch_edges._Storages._is_layout_known is True
    monkeypatch.setattr(torch_edges._Storages, "_is_layout_known", request.param)


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.usefixtures("_both_ways")
def test_tensors_without_memory_of_their_own(kind: str) -> None:
    """Breaks when a size that is only told is counted, or asking for it raises or warns."""
    tensor = odd_tensors()[kind]
    extras = look()
    assert (EdgeRole.STORAGE, "") not in edges_of(extras, tensor)
    assert extras.described[id(tensor)].startswith(type(tensor).__name__)


@pytest.mark.usefixtures("_both_ways")
def test_both_ways_of_reading_storages_agree() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # beta and deprecated features say so
        tensors = [
            torch.zeros(10),
            torch.zeros(20)[5:],
            nn.Parameter(torch.zeros(30)),
            torch.zeros(40).share_memory_(),
            torch.from_numpy(np.zeros(50)),
            torch._lazy_clone(torch.zeros(60)),
            torch.nested.nested_tensor([torch.ones(7)]),
            torch.quantize_per_tensor(torch.ones(80), 0.1, 0, torch.qint8),
        ]
    extras = look()
    nodes = [storage_of(extras, one) for one in tensors]
    assert [node.bytes for node in nodes] == [40, 80, 120, 160, 400, 240, 28, 80]
    kinds = ["tensors"] * 3 + ["shared memory", "arrays"] + ["tensors"] * 3
    assert [node.part for node in nodes] == kinds


def test_a_layout_that_differs_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when another torch lays storages out otherwise and is read all the same."""
    monkeypatch.setattr(torch_edges._Storages, "_is_layout_known", None)
    known = list(torch_edges._StorageImpl._fields_)
    moved = [*known[:6], ("more", ctypes.c_size_t), *known[6:]]
    other = type("Moved", (ctypes.Structure,), {"_fields_": moved})
    monkeypatch.setattr(torch_edges, "_StorageImpl", other)
    kept = [torch.zeros(size) for size in (10, 20, 30, 40)]
    extras = look()
    assert torch_edges._Storages._is_layout_known is False
    assert [storage_of(extras, one).bytes for one in kept] == [40, 80, 120, 160]


def test_a_storage_object_of_the_programs() -> None:
    """Breaks when a storage is out of sight as soon as its last tensor is gone, or counts twice."""
    tensor = torch.zeros(1000)
    kept = tensor.untyped_storage()
    extras = look()
    assert edges_of(extras, kept)[EdgeRole.STORAGE, ""] == [storage_of(extras, tensor).address]
    del tensor
    assert storage_of(look(), kept).bytes == 4000


# ── what is left alone ───────────────────────────────────────────────────────


def test_no_forward_runs_again() -> None:
    """Breaks when a checkpointed forward is computed a second time to see what it saved."""
    calls = []

    def forward(given: Any) -> Any:
        calls.append(1)
        return given.exp().sin()

    inputs = torch.ones(4, requires_grad=True)
    loss = checkpoint(forward, inputs, use_reentrant=False)
    loss = checkpoint(forward, loss, use_reentrant=True).sum()
    look()
    assert len(calls) == 2
    loss.backward()
    assert len(calls) == 4


def test_no_hook_is_fired() -> None:
    """Breaks when saved tensors are unpacked, or a gradient hook runs."""
    fired: list[str] = []

    def unpack(tensor: Any) -> Any:
        fired.append("unpack")
        return tensor

    def pack(tensor: Any) -> Any:
        fired.append("pack")
        return tensor

    inputs = torch.ones(4, requires_grad=True)
    with hooks(pack, unpack):
        loss = (inputs * inputs).exp().sum()
    loss.register_hook(lambda gradient: fired.append("gradient"))
    loss.grad_fn.register_hook(lambda *gradients: fired.append("node"))
    fired.clear()
    look()
    assert fired == []
    loss.backward()
    assert {"unpack", "gradient", "node"} == set(fired)


def test_no_version_is_moved_and_gradients_are_the_same() -> None:
    """Breaks when looking counts as an edit, which would make the next backward pass raise."""

    def gradients(*, is_looked_at: bool) -> Any:
        inputs = torch.linspace(0, 1, 8).requires_grad_()
        hidden = inputs * 2
        others = hidden[1:3]
        hidden[2:4].mul_(3)  # an edit through a view
        hidden.retain_grad()
        loss = (hidden.exp() * hidden).sum() + others.sum()
        before = [hidden._version, inputs._version, loss._version]
        if is_looked_at:
            look()
        assert [hidden._version, inputs._version, loss._version] == before
        loss.backward()
        return inputs.grad

    assert torch.equal(gradients(is_looked_at=False), gradients(is_looked_at=True))


def test_tensors_edited_after_they_were_saved() -> None:
    """Breaks when reading raises as the backward pass would."""
    hidden = torch.ones(1000, requires_grad=True).exp()
    node = hidden.grad_fn
    hidden.add_(1)
    extras = look()
    (saved,) = edges_of(extras, node)[EdgeRole.SAVED, "result"]
    assert storage_of(extras, saved).bytes == 4000


def test_nothing_outlives_its_references() -> None:
    """Breaks when a look keeps a tensor, a node or a storage alive."""
    hidden = Doubling.apply(torch.ones(4, 4, requires_grad=True) * 2)
    loss = (hidden * hidden).sum()
    ends = [weakref.ref(hidden), weakref.ref(loss), weakref.ref(hidden.grad_fn)]
    storages = [hidden.untyped_storage()._weak_ref(), loss.untyped_storage()._weak_ref()]
    gc.disable()
    try:
        extras = look()
        del hidden, loss
        assert [end() for end in ends] == [None] * 3
        expired = [torch.UntypedStorage._expired(storage) for storage in storages]
    finally:
        gc.enable()
        for storage in storages:
            torch.UntypedStorage._free_weak_ref(storage)
    assert expired == [True, True]
    assert extras.nodes


def blocks_left(make: Callable[[], Any]) -> float:
    """Blocks of memory that Python has more, for each thing, after it was looked at."""
    others, kept = ([make() for _ in range(3000)] for _ in range(2))
    gc.collect()
    gc.disable()
    try:
        read(*others)  # what Python itself keeps for the next tuple
        before = sys.getallocatedblocks()
        read(*kept)
        return (sys.getallocatedblocks() - before) / len(kept)
    finally:
        gc.enable()


def with_gradient() -> Any:
    leaf = torch.ones(3, requires_grad=True)
    leaf.sum().backward()
    return leaf


@pytest.mark.usefixtures("_both_ways")
def test_little_is_left_behind() -> None:
    """Breaks when every look makes the program's memory grow."""
    leaf = torch.ones(3, requires_grad=True)
    storage = not torch_edges._Storages._is_layout_known
    for make, expected in (
        (lambda: torch.zeros(3), 0 + storage),
        (lambda: torch.zeros(3)[1:], 0 + storage),
        (with_gradient, 1 + 2 * storage),  # the gradient
        (lambda: leaf + 1, 1 + storage),  # the node
        (leaf.exp, 2 + storage),  # the node and the saved tensor
    ):
        assert blocks_left(make) == pytest.approx(expected, abs=0.1)


def test_the_programs_tensor_classes_and_modes_are_not_asked() -> None:
    """Breaks when an override of the program's runs for us."""

    class Jealous(torch.Tensor):  # type: ignore[misc, name-defined]
        touched = False

        @classmethod
        def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
            cls.touched = True
            return super().__torch_function__(*args, **kwargs)

        @property
        def grad_fn(self) -> Any:
            raise AssertionError("asked")

    class Operators(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]
        def __torch_dispatch__(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("an operator ran")

    class Functions(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        def __torch_function__(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("a function was called")

    inputs = torch.ones(4).as_subclass(Jealous).requires_grad_()
    kept = (inputs * 2).exp().sum()
    Jealous.touched = False
    edges, extras = TorchEdges(1), Extras()
    with Operators(), Functions():
        edges.read([kept], extras)
    assert not Jealous.touched
    assert extras.skipped == {}
    assert extras.described[id(kept)].startswith("Jealous [] float32, grad_fn ")


# ── other threads ────────────────────────────────────────────────────────────


def test_no_other_thread_runs_while_tensors_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when another thread could begin a backward pass under a reading."""
    kept = [torch.ones(3, requires_grad=True).exp() for _ in range(300)]
    ticks, stop, seen = [0], threading.Event(), []

    def tick() -> None:
        while not stop.is_set():
            ticks[0] += 1

    class Noting(torch_edges._Reading):
        def read(self, found: list[Any], references_of_caller: int) -> None:
            before = ticks[0]
            super().read(found, references_of_caller)
            seen.append(ticks[0] - before)

    monkeypatch.setattr(torch_edges, "_Reading", Noting)
    interval_s = sys.getswitchinterval()
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        for _ in range(10):
            read(*kept)
    finally:
        stop.set()
        thread.join()
    assert seen == [0] * 10
    assert sys.getswitchinterval() == interval_s


def test_a_backward_pass_in_another_thread_is_seen() -> None:
    """Breaks when torch calls its engine in another way: reading beside it crashes the program."""
    weight = torch.ones(300, 300, requires_grad=True)
    value = weight
    for _ in range(30):
        value = value @ weight / 300
    thread = threading.Thread(target=value.sum().backward)
    thread.start()
    reasons = set()
    while thread.is_alive():
        reasons.add(TorchEdges().why_not_now())
    thread.join()
    assert "another thread runs a backward pass" in reasons
    assert TorchEdges().why_not_now() == ""
