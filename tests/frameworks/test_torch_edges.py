"""What a snapshot says a tensor retains is what is really freed, and nothing notices the look."""

from __future__ import annotations

import dataclasses
import gc
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.frameworks.torch_edges import TorchEdges
from leakscope.heap.retained import Retained
from leakscope.heap.snapshot import read_snapshot
from leakscope.observe.heap.snapshot import Moment, take_snapshot

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = torch.nn
checkpoint = torch.utils.checkpoint.checkpoint
hooks = torch.autograd.graph.saved_tensors_hooks

pytestmark = pytest.mark.torch

Made = tuple[Any, object]
"""A loss, and what the program holds beside it."""

_IN_CPP = 700
"""Bytes at most that a tensor, its storage and its autograd part take beside the data."""


def look(folder: Path) -> Path:
    """Take a snapshot of this process, as the agent does."""
    file = folder / "one.heap"
    take_snapshot(str(file), Moment("1-7", 1, 1, "optimizer"), (TorchEdges(),))
    return file


def retained(file: Path, address: int) -> tuple[int, int]:
    """Bytes of tensors and arrays that go with an object, and how many such things there are."""
    snapshot = read_snapshot(file)
    assert snapshot is not None
    memory = np.zeros_like(snapshot.bytes)
    parts = [part for part, _ in snapshot.kinds]
    for node, kind, size in zip(*snapshot.payload, strict=True):
        if parts[kind] in ("tensors", "saved", "arrays", "shared memory"):
            memory[node] += size
    nodes = np.array(snapshot.find([address]))
    assert nodes[0] >= 0
    total = Retained(dataclasses.replace(snapshot, bytes=memory)).bytes_by(nodes)
    one_each = dataclasses.replace(snapshot, bytes=(memory > 0).astype(np.int64))
    count = Retained(one_each).bytes_by(nodes)
    return total, count


# ── the truth: what `del` frees ──────────────────────────────────────────────


class Ledger(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]
    """Weak references to every storage that operators make: what has expired was freed.

    Independent of what is tested: sees storages when they are made, whoever holds them later.
    Random states are no operator's work, so tensors in the heap are entered as well.
    """

    def __init__(self) -> None:
        super().__init__()
        self.storages: dict[int, tuple[Any, int]] = {}
        self.arrays: list[tuple[weakref.ref[Any], int]] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = function(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(made):
            self.enter(tensor)
        return made

    def enter(self, tensor: Any) -> None:
        if issubclass(type(tensor), torch.Tensor):
            storage = tensor.untyped_storage()
            if storage._cdata not in self.storages:
                # A weak reference keeps the address taken, so that no key is met twice.
                self.storages[storage._cdata] = (storage._weak_ref(), storage.nbytes())

    def enter_heap(self) -> None:
        for thing in gc.get_objects():
            if type(thing) in (torch.Tensor, nn.Parameter):
                with suppress(RuntimeError):
                    self.enter(thing)

    def enter_array(self, array: Any) -> Any:
        self.arrays.append((weakref.ref(array), array.nbytes))
        return array

    def live_bytes(self) -> int:
        expired = torch.UntypedStorage._expired
        return sum(size for weak, size in self.storages.values() if not expired(weak)) + sum(
            size for array, size in self.arrays if array() is not None
        )

    def close(self) -> None:
        for weak, _ in self.storages.values():
            torch.UntypedStorage._free_weak_ref(weak)


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    made = Ledger()
    yield made
    made.close()


def _mlp(_: Ledger) -> Made:
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.Tanh())
    inputs = torch.randn(128, 64)
    return model(inputs).pow(2).mean(), (model, inputs)


def _transformer(_: Ledger) -> Made:
    layer = nn.TransformerEncoderLayer(96, 4, 192, batch_first=True)
    model = nn.TransformerEncoder(layer, 2)
    inputs = torch.randn(8, 32, 96)
    return model(inputs).mean(), (model, inputs)


def _lstm(_: Ledger, *, keeps_state: bool = False) -> Made:
    model, inputs, state = nn.LSTM(16, 32), torch.randn(10, 4, 16), None
    for _step in range(5):
        outputs, state = model(inputs, state)  # never detached
        loss = outputs.pow(2).mean()
    return loss, (model, inputs, state if keeps_state else None)


def _lstm_with_state(ledger: Ledger) -> Made:
    return _lstm(ledger, keeps_state=True)


class Saving(torch.autograd.Function):  # type: ignore[misc, name-defined]
    """Keeps tensors in every place a Function has."""

    @staticmethod
    def forward(ctx: Any, given: Any, weight: Any) -> Any:
        product = given @ weight
        ctx.save_for_backward(given, product)
        ctx.beside = [product.sin(), {"deep": product.cos()}]
        ctx.weight = weight
        return product.exp()


def _custom(_: Ledger) -> Made:
    weight, inputs = torch.randn(64, 64, requires_grad=True), torch.randn(32, 64)
    return Saving.apply(inputs * 2, weight).sum(), (weight, inputs)


def _checkpointed(*, reentrant: bool) -> Callable[[Ledger], Made]:
    def make(_: Ledger) -> Made:
        model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(4)))
        inputs = torch.randn(32, 64, requires_grad=True)
        hidden = inputs
        for layer in model:
            hidden = checkpoint(layer, hidden, use_reentrant=reentrant)
        return hidden.mean(), (model, inputs)

    return make


def _hooked(pack: Callable[[Ledger, Any], Any]) -> Callable[[Ledger], Made]:
    def make(ledger: Ledger) -> Made:
        model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
        inputs = torch.randn(128, 64)
        with hooks(lambda tensor: pack(ledger, tensor), torch.as_tensor):
            loss = model(inputs).exp().mean()
        return loss, (model, inputs)

    return make


GRAPHS: dict[str, Callable[[Ledger], Made]] = {
    "mlp": _mlp,
    "transformer": _transformer,
    "lstm": _lstm,
    "lstm, state held": _lstm_with_state,
    "custom function": _custom,
    "checkpoint, reentrant": _checkpointed(reentrant=True),
    "checkpoint": _checkpointed(reentrant=False),
    "packed to arrays": _hooked(
        lambda ledger, tensor: ledger.enter_array(tensor.detach().numpy().copy())
    ),
    "packed to copies": _hooked(lambda ledger, tensor: tensor.detach().clone()),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_prediction_is_what_del_frees(name: str, ledger: Ledger, tmp_path: Path) -> None:
    """Breaks when something a graph keeps is not seen, or something others hold is."""
    with ledger:
        loss, beside = GRAPHS[name](ledger)
    gc.collect()
    ledger.enter_heap()
    predicted, things = retained(look(tmp_path), id(loss))
    before = ledger.live_bytes()
    del loss  # and no collection after it
    freed = before - ledger.live_bytes()
    assert freed > 10_000 or name == "lstm, state held"
    assert -0.01 * freed <= predicted - freed <= 0.01 * freed + _IN_CPP * things
    assert beside is not None


def test_a_look_keeps_nothing_alive(tmp_path: Path) -> None:
    model = nn.Linear(8, 8)
    loss = model(torch.randn(4, 8)).pow(2).mean()
    gone = [weakref.ref(model.weight), weakref.ref(loss)]
    look(tmp_path)
    del model, loss
    gc.collect()
    assert [one() for one in gone] == [None, None]


def test_a_look_runs_no_code_of_the_programs_classes(tmp_path: Path) -> None:
    """Breaks when `__torch_function__`, an unpack hook or a checkpointed forward runs for us, or
    when asking a tensor inside of a graph for its gradient makes torch warn."""
    ran = []

    class Loud(torch.Tensor):  # type: ignore[misc, name-defined]
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            ran.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    loud = torch.ones(3).as_subclass(Loud)
    weight = torch.randn(8, 8, requires_grad=True)

    def unpack(tensor: Any) -> Any:
        ran.append(tensor)
        return tensor

    with hooks(lambda tensor: tensor, unpack):
        inner = (weight * 2).exp()
        loss = inner.sum()
    edited = weight * 3
    product = edited.exp()
    with torch.no_grad():
        edited.mul_(0)  # what was saved is stale: reading it through torch would raise
    ran.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        look(tmp_path)
    assert ran == []
    assert None not in [id(one) for one in (loud, loss, product)]
