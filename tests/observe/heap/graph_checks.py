"""Checks of a walk over graphs of random objects. Run by `test_walker.py`, in a small process."""

from __future__ import annotations

import gc
import io
import json
import sys
import types
import weakref
from collections import Counter
from typing import Any

from object_graphs import Inline, Slots, build, close
from read_walk import Object, Written, load_walker, walk_with

from leakscope.observe.heap import twin
from leakscope.record.snapshot_file import CLASS, IMMORTAL, MODULE, NAMESPACE, TRACKED

MANAGED_DICT = 1 << 4
COUNTED = (list, dict, set, Inline, Slots, types.FunctionType)
"""Types whose instances nobody but the graph refers to."""
walker = load_walker()


def _reachable(start: list[Any]) -> dict[int, Any]:
    """By address, all that the graph leads to, without the modules and callers it came from."""
    found: dict[int, Any] = {}
    waiting = list(start)
    while waiting:
        one = waiting.pop()
        if id(one) in found or isinstance(one, (types.ModuleType, types.FrameType)):
            continue
        found[id(one)] = one
        if isinstance(one, types.FunctionType):
            waiting += [*(one.__closure__ or ()), *(one.__defaults__ or ()), one.__code__]
        elif not isinstance(one, type):
            waiting += gc.get_referents(one)
    return found


def _check_sizes(mine: Object, other: Object, thing: object) -> None:
    """Equal, but for the block of inline attributes, which the twin does not see."""
    if type(thing).__flags__ & MANAGED_DICT:
        assert other.bytes <= mine.bytes <= other.bytes + 400, type(thing)
    else:
        assert mine.bytes == other.bytes, type(thing)


def _without_own_dict(targets: Counter[int], thing: object) -> Counter[int]:
    """From Python 3.13 on an instance with inline attributes owns its dict and does not visit it:
    only the layouts tell."""
    if sys.version_info >= (3, 13) and type(thing) is Inline:
        return targets - Counter([id(thing.__dict__)])
    return targets


def _check_targets(mine: Object, other: Object, thing: object) -> None:
    targets, others = (_without_own_dict(one.targets(), thing) for one in (mine, other))
    more, fewer = targets - others, others - targets
    if isinstance(thing, types.CodeType):
        assert len(more) <= 2  # the names and kinds of its local variables
    elif isinstance(thing, type):
        assert more.total() <= 1  # its subclasses
    else:
        assert not more, (type(thing), more)
    if mine.flags & NAMESPACE and not other.flags & NAMESPACE:
        keys = {id(key) for key in thing}  # type: ignore[attr-defined]
        assert set(fewer) <= keys  # the twin did not know that they are names
    else:
        assert not fewer, (type(thing), fewer)


def _check_labels(mine: Object, other: Object, thing: object) -> None:
    """What the twin says, C says too."""
    if mine.flags & NAMESPACE and not other.flags & NAMESPACE:
        return
    said = Counter(one for one in other.references if one.role or one.name or one.shortcut)
    missing = said - Counter(mine.references)
    assert not missing, (type(thing), missing, mine.references)


def check_same(mine: Written, other: Written, things: dict[int, Any]) -> None:
    for address, thing in things.items():
        one, two = mine.objects[address], other.objects[address]
        assert one.type == two.type == id(type(thing))
        assert one.flags & (TRACKED | CLASS | MODULE | IMMORTAL) == two.flags & (
            TRACKED | CLASS | MODULE | IMMORTAL
        ), type(thing)
        assert two.flags & NAMESPACE <= one.flags & NAMESPACE
        _check_sizes(one, two, thing)
        _check_targets(one, two, thing)
        _check_labels(one, two, thing)
        assert mine.types[one.type][:3] == other.types[two.type][:3]
        if type(thing) in COUNTED:
            assert one.count == two.count, (type(thing), one.count, two.count)


def check_same_walk(things: list[Any]) -> None:
    """C and Python write the same."""
    mine, other = walk_with(walker.walk, [things]), walk_with(twin.walk, [things])
    check_same(mine, other, _reachable(things))


def check_layouts(things: list[Any]) -> None:
    """Without the layouts that CPython does not publish names are missing, but no references."""
    mine = walk_with(walker.walk, [things])
    walker.use_layouts(False)
    other = walk_with(walker.walk, [things])
    walker.use_layouts(True)
    for address, thing in _reachable(things).items():
        one, two = mine.objects[address], other.objects[address]
        assert one.type == two.type
        if type(thing) in COUNTED:
            assert one.count == two.count, (type(thing), one.count, two.count)
        assert one.flags & TRACKED == two.flags & TRACKED
        if not one.flags & NAMESPACE:
            targets = _without_own_dict(one.targets(), thing)
            assert targets == _without_own_dict(two.targets(), thing), type(thing)
        _check_sizes(one, two, thing)


def check_sizes(things: list[Any]) -> None:
    """Sizes are what Python says."""
    written = walk_with(walker.walk, [things])
    for address, thing in _reachable(things).items():
        if isinstance(thing, (weakref.ProxyType, weakref.CallableProxyType, io.BytesIO)):
            continue  # a buffer counts only as long as nobody else refers to it, as we may do
        size, found = sys.getsizeof(thing), written.objects[address].bytes
        if type(thing).__flags__ & MANAGED_DICT:
            assert size <= found <= size + 400, type(thing)
        else:
            assert found == size, (type(thing), found, size)


def check_counts(things: list[Any]) -> None:
    """No object has fewer references than edges lead to it."""
    written = walk_with(walker.walk, [things])
    counted = Counter(
        edge.target
        for one in written.objects.values()
        for edge in one.references
        if not edge.shortcut
    )
    for address, thing in _reachable(things).items():
        one = written.objects[address]
        if not one.flags & IMMORTAL and type(thing) in COUNTED:
            assert counted[address] <= one.count, (type(thing), counted[address], one.count)


CHECKS = {
    "same": check_same_walk,
    "layouts": check_layouts,
    "sizes": check_sizes,
    "counts": check_counts,
}


def main() -> None:
    check = CHECKS[sys.argv[1]]
    gc.disable()
    for plan in json.load(sys.stdin):
        gc.collect()
        things = build(plan)
        try:
            check(things)
        except BaseException:
            sys.stderr.write(f"plan: {plan}\n")
            raise
        close(things)


if __name__ == "__main__":
    main()
