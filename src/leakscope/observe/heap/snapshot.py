"""Take a heap snapshot: walk every object, add what the frameworks know, write one file.

The walk holds the interpreter lock and runs no Python code, so it sees one moment. Framework edges
are read right after it, and only where that is harmless.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import _lru_cache_wrapper, cache
from time import monotonic_ns
from typing import Any, NamedTuple

import msgspec

from leakscope.observe.anatomy import OUR_FOLDER, module_dict
from leakscope.observe.heap import walker
from leakscope.observe.heap.edges import EdgeProvider, Extras
from leakscope.observe.heap.roots import Roots, find_roots
from leakscope.record.format import storable
from leakscope.record.snapshot_file import MAGIC, DType, SnapshotMeta, write_chunk
from leakscope.record.writer import open_high

Frames = tuple[tuple[str, int, str], ...]
"""(file, line, function) of a stack, innermost first."""

WALKER = walker.KIND
"""`c`, or `python` for the slower twin."""

_encode = msgspec.json.Encoder().encode


class Taken(NamedTuple):
    """What a snapshot came to."""

    objects: int
    edges: int
    visible_bytes: int
    """Of all objects, arrays and framework things, in the host's memory."""
    device_bytes: int
    device_addresses: frozenset[int]
    """Where tensors lie on devices."""
    spent_ns: int
    skipped: dict[str, str]
    """What could not be asked at this moment, and why."""


class Moment(NamedTuple):
    """Which snapshot this is."""

    process: str
    number: int
    step: int | None
    source: str


def take_snapshot(
    path: str, moment: Moment, providers: Sequence[EdgeProvider], *, with_sites: bool = False
) -> Taken:
    """Write a snapshot of this process to `path`. An incomplete file is removed."""
    began_ns = monotonic_ns()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    descriptor = open_high(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        with collector_paused():
            taken = _write(descriptor, moment, providers, with_sites)
    except BaseException:
        os.unlink(path)
        raise
    finally:
        os.close(descriptor)
    return taken._replace(spent_ns=monotonic_ns() - began_ns)


def _write(
    descriptor: int, moment: Moment, providers: Sequence[EdgeProvider], with_sites: bool
) -> Taken:
    _write_all(descriptor, MAGIC)
    extras = Extras()
    ready = []
    for provider in providers:
        if (wanted := provider.wanted()) and (why := provider.why_not_now()):
            extras.skipped[provider.name] = why
        elif wanted:
            ready.append(provider)
    asked = tuple(kind for provider in ready for kind in provider.wanted())
    roots = find_roots(walker.thread_dicts())
    walked = _walk(descriptor, roots.values, asked, with_sites)
    roots = roots._replace(values=[])
    for provider in ready:
        mine = provider.wanted()
        found = [one for one in walked.found if issubclass(type(one), mine)]
        provider.read(found, extras)
        del found
    _read_limits(walked.found, extras)
    meta = _meta(moment, roots, extras, walked)
    _write_all(descriptor, write_chunk("meta", _encode(meta)))
    _write_all(descriptor, write_chunk("end", b""))
    on_host = sum(node.bytes for node in extras.nodes.values() if not node.device)
    return Taken(
        walked.objects,
        walked.edges,
        walked.bytes + on_host,
        sum(node.bytes for node in extras.nodes.values() if node.device),
        frozenset(extras.device_addresses),
        0,
        extras.skipped,
    )


class _Walked(NamedTuple):
    """What a walk came to; `found` and `dtypes` hold objects of the program."""

    objects: int
    edges: int
    bytes: int
    """Shallow bytes of all objects, with the data of arrays."""
    found: list[Any]
    dtypes: tuple[Any, ...]
    sites: dict[int, Frames]


def _walk(descriptor: int, values: list[Any], asked: tuple[type, ...], with_sites: bool) -> _Walked:
    wanted = (*asked, deque, _lru_cache_wrapper)
    walked = walker.walk(descriptor, values, wanted, _array_type(), with_sites)
    objects, edges, _, found, dtypes = walked
    sites = _without_ours(walked.sites, walked.stacks)
    return _Walked(objects, edges, walked.shallow_bytes, found, dtypes, sites)


def _without_ours(
    sites: dict[int, int], stacks: dict[tuple[tuple[str, int], ...], int]
) -> dict[int, Frames]:
    """Where objects were made, innermost frame first, without leakscope's own frames."""
    frames = {
        number: tuple(
            (storable(file), line, "") for file, line in stack if not file.startswith(OUR_FOLDER)
        )
        for stack, number in stacks.items()
    }
    return {address: frames[number] for address, number in sites.items() if frames[number]}


def _meta(moment: Moment, roots: Roots, extras: Extras, walked: _Walked) -> SnapshotMeta:
    stacks: dict[Frames, int] = {}
    sites = {}
    for address, stack in (*walked.sites.items(), *extras.sites.items()):
        sites[address] = stacks.setdefault(stack, len(stacks))
    return SnapshotMeta(
        process=moment.process,
        number=moment.number,
        step=moment.step,
        source=moment.source,
        python=sys.version.split(None, 1)[0],
        walker=WALKER,
        modules=roots.modules,
        locals=roots.locals,
        others=roots.others,
        dtypes=tuple(_dtype(one) for one in walked.dtypes),
        extra_nodes=tuple(extras.nodes.values()),
        extra_edges=tuple(extras.edges),
        described=extras.described,
        limits=extras.limits,
        sites=sites,
        stacks=tuple(stacks),
        skipped=extras.skipped,
    )


def _dtype(dtype: Any) -> DType:
    return DType(id(dtype), int(dtype.itemsize), str(dtype.name))


def _read_limits(found: list[Any], extras: Extras) -> None:
    """How long a deque or a cache can become. Built-in types only: no code of the program runs."""
    for one in found:
        if type(one) is deque and one.maxlen is not None:
            extras.limits[id(one)] = one.maxlen
        elif type(one) is _lru_cache_wrapper:
            most = one.cache_info().maxsize
            if most is not None:
                extras.limits[id(one)] = most


def _array_type() -> Any:
    """NumPy's array class, if NumPy is loaded and lays its arrays out as the walker expects."""
    array = module_dict(sys.modules.get("numpy")).get("ndarray")
    return array if array is not None and _reads_arrays(sys.modules["numpy"]) else None


@cache
def _reads_arrays(numpy: Any) -> bool:
    base = numpy.arange(12, dtype=numpy.int32)
    view = base[2:].reshape(2, 5)
    return all(
        walker.check_ndarray(one, one.ctypes.data, one.ndim, one.base, one.dtype)
        for one in (base, view, numpy.array([None, "x"], dtype=object))
    )


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


@contextmanager
def collector_paused() -> Iterator[None]:
    """No collection while the look holds thousands of references."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
