"""What each live tensor is for: parameter, gradient, buffer, optimizer state, saved for backward.

One pass over the heap for modules, optimizers and tensors, then the ways that the collector does
not see: gradients nobody has touched from Python, and what autograd graphs have saved. Handles
objects of the program, and keeps none: what comes out are addresses and words.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from time import monotonic_ns
from typing import Any, NamedTuple

from leakscope.observe.anatomy import attribute_of, class_name
from leakscope.observe.autograd import (
    describe_tensor,
    is_tensor_type,
    next_nodes,
    saved_by,
    storage_of,
    without_torch_functions,
)
from leakscope.observe.devices import address_of, device_of
from leakscope.observe.old_heap import keys_of, of_kinds, with_subclasses
from leakscope.observe.moments import wait_for_calm
from leakscope.observe.own_things import has_odd_metaclass

PARAMETER, GRADIENT, BUFFER = "parameter", "gradient", "buffer"
STATE, SAVED, TENSOR = "optimizer state", "saved for backward", "tensor"
_MOST_NODES = 200_000


class Tenant(NamedTuple):
    """One storage that a tensor was found for."""

    role: str
    what: str
    holder: str
    device: str | None
    bytes: int


class Tenants(NamedTuple):
    """All storages with a tensor, by their addresses; and a tensor of each kind of the rest, whose
    holder may be searched. Keeps those tensors alive: drop it at once."""

    by_address: dict[int, Tenant]
    samples: dict[tuple[str, str | None], Any]
    """Of role `tensor`, by description and device."""


class _Found:
    """Tensors while they are being sorted; the first role a storage gets is its role."""

    def __init__(self) -> None:
        self.by_address: dict[int, Tenant] = {}
        self.samples: dict[tuple[str, str | None], Any] = {}

    def add(self, tensor: Any, role: str, holder: str) -> None:
        if not is_tensor_type(type(tensor)):
            return
        storage = storage_of(tensor)
        if storage is None or not storage[1]:
            return
        address = address_of(tensor)
        if address not in self.by_address:
            device = device_of(tensor)
            what = describe_tensor(tensor)
            self.by_address[address] = Tenant(role, what, holder, device, storage[1])
            if role == TENSOR:
                self.samples[what, device] = tensor


def find_tenants(deadline_ns: int) -> Tenants:
    """After `deadline_ns` no further graph is walked."""
    torch = sys.modules.get("torch")
    found = _Found()
    if torch is None:
        return Tenants({}, {})
    is_odd = has_odd_metaclass()
    kinds = [torch.Tensor, torch.nn.Module, sys.modules["torch.optim.optimizer"].Optimizer]
    wanted = [keys_of(with_subclasses(kind), is_odd) for kind in kinds]
    wait_for_calm()
    objects = gc.get_objects()
    picked = list(of_kinds(frozenset().union(*wanted), objects, is_odd))
    del objects
    tensors, modules, optimizers = (list(of_kinds(keys, picked, is_odd)) for keys in wanted)
    del picked
    with without_torch_functions():
        _add_modules(modules, found)
        _add_optimizers(optimizers, found)
        _add_gradients(tensors, found)
        _add_saved(tensors, found, deadline_ns)
        for tensor in tensors:
            found.add(tensor, TENSOR, "")
    return Tenants(found.by_address, found.samples)


def _add_modules(modules: list[Any], found: _Found) -> None:
    """Under the name of the outermost module: that is what a reader knows."""
    children = {id(child) for module in modules for child in _values(module, "_modules")}
    roots = [module for module in modules if id(module) not in children]
    seen: set[int] = set()
    for root in [*roots, *modules]:
        holder = f"module {class_name(type(root))}"
        waiting = [root]
        while waiting:
            module = waiting.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            waiting += _values(module, "_modules")
            for tensor in _values(module, "_parameters"):
                found.add(tensor, PARAMETER, holder)
                _add_gradient(tensor, found, holder)
            for tensor in _values(module, "_buffers"):
                found.add(tensor, BUFFER, holder)


def _values(module: Any, name: str) -> list[Any]:
    held = attribute_of(module, name)
    if not issubclass(type(held), dict):
        return []
    return [value for value in dict.values(held) if value is not None]


def _add_optimizers(optimizers: list[Any], found: _Found) -> None:
    for optimizer in optimizers:
        holder = f"optimizer {class_name(type(optimizer))}"
        state = attribute_of(optimizer, "state")
        groups = attribute_of(optimizer, "param_groups")
        for group in groups if type(groups) is list else ():
            parameters = group.get("params") if type(group) is dict else None
            for parameter in parameters if type(parameters) is list else ():
                found.add(parameter, PARAMETER, holder)
                _add_gradient(parameter, found, holder)
        for values in dict.values(state) if issubclass(type(state), dict) else ():
            for value in dict.values(values) if issubclass(type(values), dict) else ():
                found.add(value, STATE, holder)


def _add_gradients(tensors: Iterable[Any], found: _Found) -> None:
    for tensor in tensors:
        _add_gradient(tensor, found, "a tensor that requires a gradient")


def _add_gradient(tensor: Any, found: _Found, holder: str) -> None:
    base = sys.modules["torch"]._C.TensorBase
    # Asking a tensor inside a graph for its gradient makes torch warn.
    if is_tensor_type(type(tensor)) and base.is_leaf.__get__(tensor):
        gradient = base.grad.__get__(tensor)
        if gradient is not None:
            found.add(gradient, GRADIENT, holder)


def _add_saved(tensors: Iterable[Any], found: _Found, deadline_ns: int) -> None:
    """Each node once, under the first tensor that leads to it."""
    base = sys.modules["torch"]._C.TensorBase
    seen: set[Any] = set()
    for tensor in tensors:
        if monotonic_ns() > deadline_ns or len(seen) > _MOST_NODES:
            return
        node = None
        try:
            node = base.grad_fn.__get__(tensor)
        except RuntimeError:  # a view that may no longer be edited in place
            continue
        if node is None or node in seen:
            continue
        holder = f"graph of {describe_tensor(tensor)}, grad_fn {class_name(type(node))}"
        for saved in _saved_behind(node, seen):
            found.add(saved, SAVED, holder)


def _saved_behind(root: Any, seen: set[Any]) -> Iterator[Any]:
    waiting = [root]
    seen.add(root)
    while waiting:
        node = waiting.pop()
        for saved in saved_by(node):
            yield saved.data
        for following in next_nodes(node):
            if following not in seen:
                seen.add(following)
                waiting.append(following)
