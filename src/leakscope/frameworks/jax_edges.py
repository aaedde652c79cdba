"""JAX in a heap snapshot: buffers of arrays, compiled programs, caches that end with their key.

An array and an executable know the lines that made them: JAX notes the stack itself. Nothing here
waits for a computation, and nothing is dispatched.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from typing import Any
from weakref import ref

from leakscope.frameworks.tensorflow_edges import SLOT, add_unknown
from leakscope.observe.anatomy import class_name, module_dict, module_file
from leakscope.observe.heap.edges import Extras
from leakscope.record.snapshot_file import EdgeRole

_JAX, _CORE = "jax", "jax._src.core"
_LIBRARIES = ("jaxlib._jax", "jaxlib.xla_extension")
_CACHES = ("jaxlib.weakref_lru_cache", "jaxlib._jax", "jaxlib.xla_extension")

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
        kinds = (_array_class(), _class(_LIBRARIES, "LoadedExecutable"), _cache_class())
        return tuple(kind for kind in kinds if kind is not None)

    def why_not_now(self) -> str:
        """Return an empty text: nothing that is asked waits, dispatches or traces."""
        return ""

    def read(self, found: list[Any], extras: Extras) -> None:
        """Add buffers, a node for each executable, and the lines that made them."""
        array, cache = _array_class(), _cache_class()
        arrays, lines = _Arrays(extras), _Lines(extras)
        for one in found:
            kind = type(one)
            try:
                if cache is not None and issubclass(kind, cache):
                    _read_cache(one, extras)
                    continue
                lines.note(one)
                if array is not None and issubclass(kind, array):
                    arrays.read(one)
                else:
                    add_unknown(extras, one, class_name(kind))
            except Exception as error:  # noqa: BLE001 - one that cannot be asked is a gap
                # Another thread may delete or donate an array at any time.
                extras.skipped.setdefault("some objects of JAX", class_name(type(error)))


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
        if count == 1:
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
            lines = ((f.file_name, f.line_num, f.function_name) for f in noted.frames)
            others = [line for line in lines if not line[0].startswith(self._own)]
            stack = self._stacks[noted] = tuple(others[:_MOST_FRAMES])
        if stack:
            self._extras.sites[id(one)] = stack


def _read_cache(cache: Any, extras: Extras) -> None:
    """Add references from each key to what is cached for it.

    A `WeakrefLRUCache` lets go of a result when its key is gone: whoever holds the key, a jitted
    function for example, keeps the result. The cache's own references come in the order key, then
    all that belongs to it.
    """
    held = gc.get_referents(cache)
    times = Counter(map(id, held))
    key = 0
    for one in held:
        if type(one) is ref:
            target = one()
            key = id(target) if target is not None else 0
        elif key and times[id(one)] == 1 and gc.is_tracked(one):
            extras.add_edge(key, id(one), EdgeRole.ITEM, _CACHED)


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


def _array_class() -> type | None:
    return _class(_LIBRARIES, "ArrayImpl")


def _cache_class() -> type | None:
    return _class(_CACHES, "WeakrefLRUCache")


def _class(modules: tuple[str, ...], name: str) -> type | None:
    for module in modules:
        found = module_dict(sys.modules.get(module)).get(name)
        if issubclass(type(found), type):
            return found
    return None
