"""JAX in a heap snapshot: buffers of arrays, compiled programs, caches that end with their key.

An array and an executable know the lines that made them: JAX notes the stack itself. Nothing here
waits for a computation, and nothing is dispatched.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from functools import partial
from typing import Any
from weakref import ref

from leakscope.frameworks.tensorflow_edges import SLOT, add_unknown
from leakscope.observe.anatomy import class_name, module_dict, module_file
from leakscope.observe.heap.edges import Extras
from leakscope.record.format import storable
from leakscope.record.snapshot_file import EdgeRole

_JAX, _CORE = "jax", "jax._src.core"
_LIBRARIES = ("jaxlib._jax", "jaxlib.weakref_lru_cache", "jaxlib.xla_extension")

_CACHED = "cached"
"""Name of the reference from the key of a weak cache to what is cached for it."""

_MOST_FRAMES = 16
"""Lines of one stack that are kept."""

_HOST_MEMORY = ("pinned_host", "unpinned_host")


class JaxEdges:
    """Adds JAX's buffers, executables and weak caches to a snapshot."""

    name = "jax"

    def wanted(self) -> tuple[type, ...]:
        """Return the classes to ask for; none while JAX is not loaded."""
        if _CORE not in sys.modules:
            return ()
        kinds = (_ARRAY(), _EXECUTABLE(), _CACHE(), _JITTED())
        return tuple(kind for kind in kinds if kind is not None)

    def why_not_now(self) -> str:
        """Return an empty text: nothing that is asked waits, dispatches or traces."""
        return ""

    def read(self, found: list[Any], extras: Extras) -> None:
        """Add buffers, what caches keep for whom, and a node for each executable."""
        array, executable, cache, jitted = _ARRAY(), _EXECUTABLE(), _CACHE(), _JITTED()
        arrays, lines, results = _Arrays(extras), _Lines(extras), _Results(extras)
        for one in found:
            kind = type(one)
            try:
                if kind is array:
                    lines.note(one)
                    arrays.read(one)
                elif kind is executable:
                    lines.note(one)
                    add_unknown(extras, one, class_name(kind))
                elif kind is jitted:
                    results.note_jitted(one)
                elif kind is cache:
                    results.note_cache(one)
            except Exception as error:  # noqa: BLE001 - one that does not answer is a gap
                # Another thread may delete or donate an array at any time.
                extras.skipped["some objects of JAX"] = class_name(type(error))
        results.add()


class _Arrays:
    """Reads the memory of arrays."""

    def __init__(self, extras: Extras) -> None:
        self._extras = extras
        self._devices: dict[int, tuple[str, ...]] = {}
        self._described: dict[tuple[Any, Any], str] = {}

    def read(self, array: Any) -> None:
        if array.is_deleted():
            return
        owner, aval, sharding = id(array), array.aval, array.sharding
        key = aval.shape, aval.dtype
        words = self._described.get(key)
        if words is None:
            words = f"{class_name(type(array))} {list(aval.shape)} {aval.dtype}"
            self._described[key] = words
        self._extras.described[owner] = words
        size = array.on_device_size_in_bytes()
        if not size:
            return
        devices = self._devices.get(id(sharding))
        if devices is None:
            devices = self._devices[id(sharding)] = _device_names(sharding)
        count = len(sharding.device_set)
        if count == 1 and devices:
            self._add(owner, array.unsafe_buffer_pointer() & -SLOT, size, devices[0])
            return
        most = type(array).__basicsize__ // SLOT - 1
        for number, device in enumerate(devices[:most], 1):
            self._add(owner, owner + SLOT * number, size // count, device)

    def _add(self, owner: int, address: int, size: int, device: str) -> None:
        self._extras.add_node(address, "buffer", size, part="tensors", device=device)
        self._extras.add_edge(owner, address, EdgeRole.STORAGE)


class _Lines:
    """Hands over the stacks that JAX noted, without JAX's own lines."""

    def __init__(self, extras: Extras) -> None:
        self._extras = extras
        self._stacks: dict[Any, tuple[tuple[str, int, str], ...]] = {}
        file = module_file(module_dict(sys.modules.get(_JAX)))
        self._own = os.path.dirname(file) + os.sep if file else "\0"

    def note(self, one: Any) -> None:
        noted = getattr(one, "traceback", None)
        if noted is None:
            return
        stack = self._stacks.get(noted)
        if stack is None:
            lines = (
                (storable(frame.file_name), frame.line_num, storable(frame.function_name))
                for frame in noted.frames
            )
            others = [line for line in lines if not line[0].startswith(self._own)]
            stack = self._stacks[noted] = tuple(others[:_MOST_FRAMES])
        if stack:
            self._extras.sites[id(one)] = stack


class _Results:
    """Adds references from the keys of weak caches to what is cached for them.

    A `WeakrefLRUCache` lets go of a result when its key is gone. So whoever holds the key keeps the
    result: a function, and `jax.jit` of that function.
    """

    def __init__(self, extras: Extras) -> None:
        self._extras = extras
        self._jitted: dict[int, list[int]] = {}
        """By address of a function: the addresses of `jax.jit` of it."""
        self._cached: list[tuple[int, int]] = []

    def note_jitted(self, jitted: Any) -> None:
        function = getattr(jitted, "__wrapped__", None)
        if function is not None:
            self._jitted.setdefault(id(function), []).append(id(jitted))

    def note_cache(self, cache: Any) -> None:
        # A cache's references come in the order: a key, then all that belongs to it.
        held = gc.get_referents(cache)
        times = Counter(map(id, held))
        key = 0
        for one in held:
            if type(one) is ref:
                target = one()
                key = id(target) if target is not None else 0
            elif key and times[id(one)] == 1 and gc.is_tracked(one):
                self._cached.append((key, id(one)))

    def add(self) -> None:
        for key, result in self._cached:
            for source in (*self._jitted.get(key, ()), key):
                self._extras.add_edge(source, result, EdgeRole.ITEM, _CACHED)


def _device_names(sharding: Any) -> tuple[str, ...]:
    """Return `cuda:0` for each device of this process; an empty text for the host's memory.

    `addressable_devices` is not asked: the sharding would keep the answer.
    """
    mine = [one for one in sharding.device_set if one.process_index == one.client.process_index()]
    is_on_host = sharding.memory_kind in _HOST_MEMORY
    mine.sort(key=lambda one: one.id)
    return tuple("" if is_on_host else _device_name(one) for one in mine)


def _device_name(device: Any) -> str:
    kind = device.platform
    if kind == "cpu":
        return ""
    return f"{'cuda' if kind in ('gpu', 'cuda') else kind}:{device.local_hardware_id}"


def _class(name: str) -> type | None:
    """Return a class of JAX's native library, wherever this version has it."""
    for module in _LIBRARIES:
        found = module_dict(sys.modules.get(module)).get(name)
        if issubclass(type(found), type):
            return found
    return None


_ARRAY = partial(_class, "ArrayImpl")
_EXECUTABLE = partial(_class, "LoadedExecutable")
_CACHE = partial(_class, "WeakrefLRUCache")
_JITTED = partial(_class, "PjitFunction")
