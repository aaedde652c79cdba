"""Everything that some things lead to, and who else leads there.

Goes from object to object as the collector does, with the ways it cannot see added: autograd
graphs, tensors held in C++, arrays. Then asks of everything it met whether all references to it
come from here; the collector itself finds garbage this way. Python counts the references to its
objects, PyTorch those to its tensors and storages, and both are compared.

Runs no code of the program: no attribute, `__len__`, `__eq__` or `__sizeof__` of its classes.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from types import FunctionType, ModuleType
from typing import Any

from leakscope.model import Blocks
from leakscope.observe import autograd, foreign
from leakscope.observe.autograd import HEAP_TYPE, flags_of
from leakscope.observe.devices import (
    NOTHING_GIVEN,
    Given,
    PoolId,
    address_of,
    device_of,
    rounded,
)
from leakscope.observe.reached_types import Role, is_all_plain, look_at_type, own_plain_blocks

SHARED = -1
"""Owner of what the rest of the program leads to as well."""

TOGETHER = -3
"""Owner of what several items lead to, and nothing else does."""

TENSORS, SHARED_MEMORY = "tensors", "shared memory"
_NONE: Mapping[int, int] = {}
UNPACK_HOOK = "unpack hook"
_NOBODY = -2
_MANY = 256
"""Numbers and strings in one container from which they are weighed by a sample: a list of 16,000
would use up all that a look may visit, and count for a third of its weight."""
_INLINE_VALUES_BYTES = 16
"""Beside eight for each, what an instance pays for attributes without a `__dict__` to hold them."""
_ARE_VALUES_INSIDE = sys.version_info >= (3, 13)


class Reached:
    """Everything reached from some items, numbered in the order it was met."""

    def __init__(
        self,
        most_objects: int,
        ignore: Set[int],
        ours: Mapping[int, int] = _NONE,
        given: Given = NOTHING_GIVEN,
    ) -> None:
        self.things: list[Any] = []
        self.roles: list[Role] = []
        self.sizes: list[int] = []
        self.parts: list[str] = []
        self.references: list[list[int]] = []
        self.counted: list[int] = []
        """References from inside that the thing's own count knows of."""
        self.found_by: list[int] = []
        self.found_via: list[str] = []
        self.beside: dict[int, Blocks] = {}
        """What is counted with a thing and lies in blocks of its own: numbers and strings that were
        sampled, attributes without a `__dict__`."""
        self.on_device: dict[int, str] = {}
        """The storages that are not in the host's memory: where they are."""
        self.items = 0
        self.is_cut = False
        self.gap: str | None = None
        self._in_graph: list[bool] = []
        self._followed = 0
        self._most = most_objects
        self._numbers: dict[int, int] = {}
        # By id: the hash of a class is the business of its metaclass, which may be the program's.
        self._kinds: dict[int, tuple[Role, Callable[[Any], int]]] = {}
        self._ignore = set(ignore) | _ids_of_globals()
        self._ours = ours
        self._given = given
        self._pools_met: set[PoolId] = set()

    def explore(self, items: list[Any]) -> None:
        for item in items:
            self._refer(_NOBODY, item)
        self.items = len(self.things)
        self._follow_all()
        if self._adopt_pack_hooks():
            self._follow_all()

    def _follow_all(self) -> None:
        while self._followed < len(self.things) and not self.is_cut:
            number = self._followed
            self._followed += 1
            follow = _FOLLOW.get(self.roles[number])
            try:
                if follow is not None:
                    follow(self, number, self.things[number])
            except Exception as error:  # noqa: BLE001 - one odd thing must not hide all the others
                self.gap = self.gap or f"{self.roles[number].value}: {type(error).__name__}"

    # ── from one thing to the next ──

    def _refer(self, holder: int, thing: Any, via: str = "", *, is_counted: bool = True) -> None:
        kind = type(thing)
        known = self._kinds.get(id(kind))
        if known is None:
            known = self._kinds[id(kind)] = look_at_type(kind)
        role, size_of = known
        if role is Role.NOTHING:
            return
        key = -thing._cdata if role is Role.STORAGE else id(thing)
        number = self._numbers.get(key)
        if number is None:
            if key in self._ignore:
                return
            if len(self.things) >= self._most:
                self.is_cut = True
                return
            number = self._add(key, thing, role, size_of(thing), holder, via)
        if holder != _NOBODY:
            self.references[holder].append(number)
            self.counted[number] += is_counted

    def _add(self, key: int, thing: Any, role: Role, size: int, holder: int, via: str) -> int:
        number = self._numbers[key] = len(self.things)
        in_graph = role is Role.NODE or (holder != _NOBODY and self._in_graph[holder])
        self._in_graph.append(in_graph)
        self.things.append(thing)
        self.roles.append(role)
        self.sizes.append(size)
        self.parts.append(_part_of(role, in_graph))
        self.references.append([])
        self.counted.append(0)
        self.found_by.append(holder)
        self.found_via.append(via)
        return number

    def _add_data(self, holder: int, address: int, size: int) -> int:
        """Memory by its address, for an array and a tensor may share it."""
        number = self._numbers.get(-address)
        if number is None:
            number = self._add(-address, None, Role.DATA, size, holder, "")
        self.references[holder].append(number)
        return number

    def _follow_object(self, number: int, thing: Any) -> None:
        referents = gc.get_referents(thing)
        if len(referents) >= _MANY and is_all_plain(referents):
            size, self.beside[number] = own_plain_blocks(referents)
            self.sizes[number] += size
            return
        for referent in referents:
            self._refer(number, referent)

    def _follow_instance(self, number: int, thing: Any) -> None:
        if self._given.by_pool:
            self._add_pool(number, thing)
        referents = gc.get_referents(thing)
        if not any(type(referent) is dict for referent in referents):
            values = _INLINE_VALUES_BYTES + 8 * (len(referents) - 1)
            self.sizes[number] += values
            if not _ARE_VALUES_INSIDE:
                self.beside[number] = Blocks(1, values)
        for referent in referents:
            self._refer(number, referent)

    def _follow_function(self, number: int, thing: Any) -> None:
        """Functions and finished frames, but not out of them into the globals they see."""
        is_function = type(thing) is FunctionType
        seen = thing.__globals__ if is_function else thing.f_globals
        built_in = thing.__builtins__ if is_function else thing.f_builtins
        for referent in gc.get_referents(thing):
            if referent is not seen and referent is not built_in:
                self._refer(number, referent)

    def _follow_dict(self, number: int, thing: Any) -> None:
        self._follow_object(number, thing)
        # The collector leaves out the keys of a dict that has only strings for keys.
        keys = list(dict.keys(thing))
        if all(type(key) is str for key in keys):
            for key in keys:
                self._refer(number, key)

    def _follow_tensor(self, number: int, thing: Any) -> None:
        for referent in gc.get_referents(thing):
            if not autograd.is_node_type(type(referent)):  # comes below, and only once
                self._refer(number, referent)
        storage = autograd.storage_face(thing)
        if storage is not None:
            self._refer(number, storage)
            self._place(storage, thing)
        for via, value in autograd.neighbours(thing):
            self._refer(number, value, via, is_counted=via != ".grad_fn")

    def _place(self, storage: Any, tensor: Any) -> None:
        """Note where a storage is; on a device it takes a block of the allocator's."""
        device = device_of(tensor)
        number = self._numbers.get(-storage._cdata)
        if device is None or number is None or number in self.on_device:
            return
        self.on_device[number] = device
        by_address = self._given.by_address
        block = by_address.get(address_of(tensor)) if by_address else None
        self.sizes[number] = block or rounded(self.sizes[number])

    def _add_pool(self, number: int, thing: Any) -> None:
        """A CUDA graph keeps what its pool has reserved; of several in one pool the first does."""
        graph = sys.modules["torch"]._C._CUDAGraph
        if not issubclass(type(thing), graph):
            return
        with suppress(RuntimeError):  # not captured yet
            key = tuple(graph.pool(thing))
            pool = self._given.by_pool.get(key)
            if pool is not None and key not in self._pools_met:
                self._pools_met.add(key)
                self.sizes[number] += pool.bytes
                self.on_device[number] = pool.device

    def _follow_saved(self, number: int, thing: Any) -> None:
        saved = autograd.read_saved("", thing)
        if saved is not None:
            self._refer(number, saved.data, "saved")
            self._refer(number, saved.unpack_hook, UNPACK_HOOK)

    def _follow_storage(self, number: int, thing: Any) -> None:
        if thing.device.type != "cpu":
            return
        is_shared = self.parts[number] == TENSORS and thing.is_shared()
        if is_shared:
            self.parts[number] = SHARED_MEMORY
        if not thing.resizable():
            # Made from memory of somebody else's, an array's most likely, which may be met too.
            data = self._add_data(number, thing.data_ptr(), self.sizes[number])
            self.sizes[number] = 0
            if is_shared:
                self.parts[data] = SHARED_MEMORY

    def _follow_node(self, number: int, thing: Any) -> None:
        for saved in autograd.saved_by(thing):
            self._refer(number, saved.data, f"saved {saved.name}")
            self._refer(number, saved.unpack_hook, UNPACK_HOOK)
        self._refer(number, autograd.leaf_of(thing), ".variable")
        for following in autograd.next_nodes(thing):
            self._refer(number, following, is_counted=False)
        if flags_of(type(thing)) & HEAP_TYPE:  # a custom Function, with its ctx
            self._follow_object(number, thing)

    def _follow_array(self, number: int, thing: Any) -> None:
        array = sys.modules["numpy"].ndarray
        owner = array.base.__get__(thing)
        if owner is not None:
            self._refer(number, owner, ".base")
        elif array.flags.__get__(thing).owndata:
            address = array.__array_interface__.__get__(thing)["data"][0]
            self._add_data(number, address, array.nbytes.__get__(thing))
        if owner is None and array.dtype.__get__(thing).kind == "O":
            for value in array.flat.__get__(thing):
                self._refer(number, value)
        self._follow_object(number, thing)

    def _follow_foreign(self, number: int, thing: Any) -> None:
        memory = foreign.memory_of(thing)
        if memory is not None:
            data = self._add_data(number, memory.address, memory.bytes)
            self.parts[data] = TENSORS
        self._follow_object(number, thing)

    def _adopt_pack_hooks(self) -> bool:
        """A node keeps the pack hook beside the unpack hook and shows it to nobody; if the two
        were written side by side (torch.utils.checkpoint), they share what is around them, which
        then seems held by somebody else. The hook is looked for in the heap (some 20 ms at
        180,000 objects) and taken as the nodes' if all its references can be theirs."""
        hooks = {
            id(cell): number
            for number, via in enumerate(self.found_via)
            if via == UNPACK_HOOK and type(self.things[number]) is FunctionType
            for cell in self.things[number].__closure__ or ()
        }
        if self.is_cut or not hooks:
            return False
        beside = [f for f in _functions_around(hooks.keys()) if id(f) not in self._numbers]
        ours = _references_to([object()], 0)
        before = len(self.things)
        for position in range(len(beside)):
            number = next(hooks[id(c)] for c in beside[position].__closure__ if id(c) in hooks)
            if _references_to(beside, position) - ours == self.counted[number]:
                self._refer(number, beside[position], "pack hook")
                self.counted[-1] = self.counted[number]
        return len(self.things) > before

    # ── who else refers to it ──

    def held_by_references(self) -> Iterator[int]:
        """Things with more references than were met here: the rest of the program has them."""
        ours = _references_to([object()], 0)
        is_face_kept = self._is_face_kept(Role.STORAGE, ours)
        is_node_kept = self._is_face_kept(Role.NODE, ours)
        for number, role in enumerate(self.roles):
            if role is Role.DATA:
                continue
            outside = _references_to(self.things, number) - ours - self.counted[number]
            outside -= self._ours.get(id(self.things[number]), 0)
            if role is Role.TENSOR or role is Role.STORAGE:
                in_c = autograd.references_in_c(self.things[number]) - 1
                outside += in_c - (is_face_kept and in_c > 0)
                if number < self.items:  # Python's references to an item are the ones to go
                    outside = in_c - self.counted[number]
            elif number < self.items:
                continue
            elif role is Role.NODE:
                is_custom = flags_of(type(self.things[number])) & HEAP_TYPE
                outside -= bool(is_node_kept or is_custom)
            if outside > 0:
                yield number

    def _is_face_kept(self, role: Role, ours: int) -> bool:
        """True where C++ itself has one reference to the Python object of what it refers to, as
        torch 2.13 does for tensors, storages and nodes: then every one of them shows it. In
        torches before, only what Python no longer refers to was kept so."""
        numbers = (number for number, its in enumerate(self.roles) if its is role)
        return min((_references_to(self.things, n) - ours for n in numbers), default=1) > 0

    def held_by_other_graphs(self, most_nodes: int) -> list[int]:
        """Nodes that a live tensor, or a node in Python's hands, outside of here leads to, as far
        as that shows within so many nodes of other graphs, nearest to their roots first.

        PyTorch tells nobody how many refer to a node."""
        here = {n for n, role in enumerate(self.roles) if role is Role.NODE}
        if not here:
            return []
        roots = [r for r in autograd.live_roots() if id(r[0]) not in self._numbers]
        others = autograd.reachable_nodes((node for _, node in roots), most_nodes)
        return [number for number in here if self.things[number] in others]

    def find_owners(self, held: Iterable[int], *, by_several: int = SHARED) -> list[int]:
        """For each thing the one item that keeps it alive, `by_several` if more than one does, or
        `SHARED` if something else does too."""
        owners = [_NOBODY] * len(self.things)
        waiting = [(number, number) for number in range(self.items)]
        waiting += [(number, SHARED) for number in held]
        while waiting:
            number, owner = waiting.pop()
            before = owners[number]
            if before in (owner, SHARED) or (before == by_several and owner != SHARED):
                continue
            if before != _NOBODY and owner != SHARED:
                owner = by_several
            owners[number] = owner
            waiting += [(referent, owner) for referent in self.references[number]]
        return owners


_FOLLOW: dict[Role, Callable[[Reached, int, Any], None]] = {
    Role.OBJECT: Reached._follow_object,
    Role.INSTANCE: Reached._follow_instance,
    Role.FUNCTION: Reached._follow_function,
    Role.DICT: Reached._follow_dict,
    Role.TENSOR: Reached._follow_tensor,
    Role.SAVED: Reached._follow_saved,
    Role.STORAGE: Reached._follow_storage,
    Role.NODE: Reached._follow_node,
    Role.ARRAY: Reached._follow_array,
    Role.FOREIGN: Reached._follow_foreign,
    Role.OPAQUE: Reached._follow_object,
}


def _references_to(things: list[Any], number: int) -> int:
    """References to a thing in a list, with the same few of our own each time."""
    thing = things[number]
    return sys.getrefcount(thing)


def _functions_around(cells: Set[int]) -> list[Any]:
    """Functions with one of these cells in their closure, in the whole heap. In one pass of ours:
    `gc.get_referrers` compares each reference of the heap with each of the cells."""
    functions = [thing for thing in gc.get_objects() if type(thing) is FunctionType]
    return [f for f in functions if f.__closure__ and any(id(c) in cells for c in f.__closure__)]


def _ids_of_globals() -> set[int]:
    """The namespaces of all modules, which everything leads to and nothing of them is an item's."""
    namespace_of_module = autograd.namespace_of(ModuleType)["__dict__"].__get__
    modules = list(sys.modules.values())
    return {id(namespace_of_module(m)) for m in modules if issubclass(type(m), ModuleType)}


def _part_of(role: Role, in_graph: bool) -> str:
    if role in (Role.TENSOR, Role.STORAGE, Role.SAVED):
        return "saved" if in_graph else TENSORS
    if role is Role.NODE:
        return "nodes"
    return "arrays" if role in (Role.ARRAY, Role.DATA) else "python"
