"""The autograd graph is read whole, and nothing notices."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakscope.observe.autograd import (
    Graph,
    count_nodes,
    describe_tensor,
    saved_by,
    storage_of,
    walk,
    without_torch_functions,
)
from leakscope.observe.weigh import retained_by_graph, weigh

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = torch.nn
checkpoint = torch.utils.checkpoint.checkpoint
hooks = torch.autograd.graph.saved_tensors_hooks

pytestmark = pytest.mark.torch

Look = Callable[[Any], object]
LOOKS: dict[str, Look] = {
    "count_nodes": lambda loss: count_nodes(loss.grad_fn, 10_000),
    "walk": lambda loss: walk([loss.grad_fn], most_nodes=10_000).nodes,
    "weigh": lambda loss: weigh([loss]).gap,
    "retained_by_graph": retained_by_graph,
}


@pytest.fixture(params=LOOKS)
def look(request: pytest.FixtureRequest) -> Look:
    return LOOKS[request.param]


def read(loss: Any) -> Graph:
    return walk([loss.grad_fn], most_nodes=10_000)


class Doubled(torch.autograd.Function):  # type: ignore[misc, name-defined]
    @staticmethod
    def forward(ctx: Any, given: Any) -> Any:
        ctx.save_for_backward(given)
        ctx.beside = {"squared": given.detach() ** 2}
        ctx.word = "a word"
        return given * 2

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0] * 2


# ── what is read ─────────────────────────────────────────────────────────────


@st.composite
def sums(draw: st.DrawFn) -> list[tuple[int, int]]:
    """For each new tensor, the two earlier ones that it adds up; two leaves come first."""
    size = draw(st.integers(1, 30))
    earlier = [st.integers(0, place + 1) for place in range(size)]
    return [(draw(one), draw(one)) for one in earlier]


@given(sums())
@settings(max_examples=60, deadline=None)
def test_every_node_counts_once(pairs: list[tuple[int, int]]) -> None:
    """Breaks when a node reached on two ways counts twice, or one is left out."""
    tensors = [torch.ones(1, requires_grad=True) for _ in range(2)]
    for left, right in pairs:
        tensors.append(tensors[left] + tensors[right])
    expected, waiting = set(), [len(tensors) - 1]
    while waiting:
        place = waiting.pop()
        expected.add(place)
        waiting += () if place < 2 else pairs[place - 2]
    root = tensors[-1].grad_fn
    assert count_nodes(root, 10_000) == len(expected)
    graph = walk([root], most_nodes=10_000)
    assert (graph.nodes, graph.is_cut) == (len(expected), False)
    assert len(graph.leaves) == len([place for place in expected if place < 2])


def test_no_more_nodes_than_wanted() -> None:
    """Breaks when a graph of millions of nodes is walked to its end."""
    value = torch.ones(1, requires_grad=True)
    for _ in range(100):
        value = value + 1
    assert count_nodes(value.grad_fn, 30) == 30
    assert count_nodes(value.grad_fn, 101) == count_nodes(value.grad_fn, 500) == 101
    assert walk([value.grad_fn], most_nodes=30)[:2] == (30, True)
    assert walk([value.grad_fn], most_nodes=101)[:2] == (101, False)
    assert count_nodes(None, 5) == 0
    assert walk([None], most_nodes=5).nodes == 0


def test_views_of_one_storage_count_once() -> None:
    """Breaks when saved views are summed by their own sizes."""
    weight = torch.ones(8, 8, requires_grad=True)
    wide = torch.randn(8, 64)
    loss = (wide[:, :8] @ weight + wide[:, 8:16] @ weight).sum()
    graph = read(loss)
    assert graph.saved[wide.untyped_storage()._cdata] == wide.numel() * 4
    assert sum(graph.saved.values()) == wide.numel() * 4
    assert [leaf is weight for leaf in graph.leaves] == [True]


def test_the_first_saved_tensor_is_told() -> None:
    """Breaks when a path through a graph can no longer be drawn, or ends at a parameter."""
    loss = nn.Linear(512, 4)(torch.randn(64, 512)).mean()
    assert read(loss).first == ("AddmmBackward0", "mat1", (64, 512), "float32", 64 * 512 * 4)


def test_what_functions_and_hooks_keep_is_handed_on() -> None:
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
    objects = read(Doubled.apply(hooked).sum()).objects
    assert len(packed) == 1  # what a Function saves, and exp inside the block
    assert any(thing is packed[0] for thing in objects)
    assert any(thing is unpack for thing in objects)
    assert any(type(thing) is dict and "squared" in thing for thing in objects)
    assert "a word" in [thing for thing in objects if type(thing) is str]


def test_after_backward_only_nodes_are_left() -> None:
    """Breaks when freed tensors raise, or are counted still."""
    loss = Doubled.apply(nn.Linear(4, 4)(torch.randn(2, 4)).exp()).sum()
    before = read(loss)
    loss.backward()
    after = read(loss)
    assert (after.nodes, after.saved) == (before.nodes, {})
    assert len(before.saved) == 2
    assert len(after.objects) == len(before.objects)  # a ctx keeps its attributes


def odd_tensors() -> dict[str, Any]:
    fake = torch._subclasses.FakeTensorMode()
    with fake, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made_up = torch.empty(1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # beta features say so
        return {
            "meta": torch.empty(1000, device="meta"),
            "fake": made_up,
            "sparse": torch.eye(3).to_sparse(),
            "compressed": torch.eye(3).to_sparse_csr(),
            "mkldnn": torch.eye(3).to_mkldnn(),
            "nested": torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged),
        }


@pytest.mark.parametrize("kind", ["meta", "fake", "sparse", "compressed", "mkldnn", "nested"])
def test_tensors_without_memory_of_their_own(kind: str) -> None:
    """Breaks when a size that is only told is counted, or asking for it raises or warns."""
    tensor = odd_tensors()[kind]
    with without_torch_functions():
        assert storage_of(tensor) is None
        assert type(tensor).__name__ in describe_tensor(tensor)
    kept = [tensor]
    weight = weigh([kept])
    assert weight.gap is None
    assert weight.exclusive_bytes < 20_000


def test_lazy_parameters_and_lazy_clones() -> None:
    """Breaks when a parameter without a shape raises, or a lazily cloned tensor is copied."""
    lazy = nn.LazyLinear(3).weight
    clone = torch._lazy_clone(torch.ones(1000))
    with without_torch_functions():
        storage = storage_of(lazy)
        assert storage is not None
        assert storage[1] == 0
        assert describe_tensor(lazy).startswith("UninitializedParameter")
        assert storage_of(clone) is not None
    weigh([clone])
    assert torch._C._is_cow_tensor(clone)


# ── what is left alone ───────────────────────────────────────────────────────


def test_no_forward_runs_again(look: Look) -> None:
    """Breaks when a checkpointed forward is computed a second time to see what it saved."""
    calls = []

    def forward(given: Any) -> Any:
        calls.append(1)
        return given.exp().sin()

    inputs = torch.ones(4, requires_grad=True)
    loss = checkpoint(forward, inputs, use_reentrant=False)
    loss = checkpoint(forward, loss, use_reentrant=True).sum()
    look(loss)
    assert len(calls) == 2
    loss.backward()
    assert len(calls) == 4


def test_no_hook_is_fired(look: Look) -> None:
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
    look(loss)
    assert fired == []
    loss.backward()
    assert {"unpack", "gradient", "node"} == set(fired)


def test_no_version_is_moved_and_gradients_are_the_same(look: Look) -> None:
    """Breaks when looking counts as an edit, which would make the next backward pass raise."""

    def gradients(look: Look) -> tuple[list[int], Any]:
        inputs = torch.linspace(0, 1, 8).requires_grad_()
        hidden = inputs * 2
        hidden[2:4].mul_(3)  # an edit through a view
        hidden.retain_grad()
        loss = (hidden.exp() * hidden).sum()
        before = [hidden._version, inputs._version, loss._version]
        look(loss)
        assert [hidden._version, inputs._version, loss._version] == before
        loss.backward()
        return before, inputs.grad

    plain, seen = gradients(lambda loss: None), gradients(look)
    assert plain[0] == seen[0]
    assert torch.equal(plain[1], seen[1])


def test_tensors_edited_after_they_were_saved(look: Look) -> None:
    """Breaks when reading raises as the backward pass would."""
    inputs = torch.ones(4, requires_grad=True)
    hidden = inputs.exp()
    loss = hidden.sum()
    hidden.add_(1)
    look(hidden)
    assert sum(read(hidden).saved.values()) == hidden.numel() * 4
    assert read(loss).nodes == 3


@pytest.mark.filterwarnings("error")
def test_nothing_outlives_its_references(look: Look) -> None:
    """Breaks when a look keeps a tensor, a node or a thing of the program's alive."""
    inputs = torch.ones(4, requires_grad=True)
    hidden = Doubled.apply(inputs * 2)
    loss = (hidden * hidden).sum()
    ends = [weakref.ref(hidden), weakref.ref(loss), weakref.ref(hidden.grad_fn)]
    storages = [hidden.untyped_storage()._weak_ref(), loss.untyped_storage()._weak_ref()]
    gc.disable()
    try:
        look(loss)
        del hidden, loss
        assert [end() for end in ends] == [None] * 3
        expired = [torch.UntypedStorage._expired(storage) for storage in storages]
    finally:
        gc.enable()
        for storage in storages:
            torch.UntypedStorage._free_weak_ref(storage)
    assert expired == [True, True]


def test_the_collector_is_left_as_it_was(look: Look) -> None:
    """Breaks when a program that has switched the collector off gets it back on."""
    loss = torch.ones(4, requires_grad=True).sum()
    gc.disable()
    try:
        look(loss)
        assert not gc.isenabled()
    finally:
        gc.enable()
    look(loss)
    assert gc.isenabled()


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

    class Spy(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]
        seen = 0

        def __torch_dispatch__(self, *args: Any, **kwargs: Any) -> Any:
            self.seen += 1
            raise AssertionError("an operator ran")

    inputs = torch.ones(4).as_subclass(Jealous).requires_grad_()
    kept = (inputs * 2).exp().sum()
    root = torch._C.TensorBase.grad_fn.__get__(kept)
    Jealous.touched = False
    with Spy() as spy:
        walk([root], most_nodes=100)
        count_nodes(root, 100)
        assert weigh([kept]).gap is None
        assert retained_by_graph(kept)
    assert (Jealous.touched, spy.seen) == (False, 0)


def test_raw_saves_have_names() -> None:
    """Breaks when a new torch renames what this module reads: it would then see nothing."""
    loss = torch.ones(2, 2, requires_grad=True) @ torch.ones(2, 2)
    assert [saved.name for saved in saved_by(loss.grad_fn)] == ["mat2"]
    assert [saved.unpack_hook for saved in saved_by(loss.grad_fn)] == [None]
