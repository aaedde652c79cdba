"""How many bytes a thing keeps alive that nothing else does.

Starts at some things (items of a list that grows, a kept loss), goes through all they lead to and
leaves out what others lead to as well; see observe/reach.py. Keeps nothing after it returns, and
works without torch and without numpy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from itertools import pairwise
from types import (
    CellType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
)
from typing import Any, NamedTuple

from leakscope.model import NO_BLOCKS, WHOLE, Blocks, SiteTally
from leakscope.observe import autograd, foreign
from leakscope.observe.anatomy import class_name, describe
from leakscope.observe.autograd import HEAP_TYPE, flags_of, mro_of, namespace_of
from leakscope.observe.circles import in_circles
from leakscope.observe.devices import NOTHING_GIVEN, Given
from leakscope.observe.lent import with_lent
from leakscope.observe.links import KEYS_SHOWN, LONGEST_KEY
from leakscope.observe.origins import origins
from leakscope.observe.quiet import quiet_collector
from leakscope.observe.reach import SHARED, TENSORS, TOGETHER, Reached
from leakscope.observe.reached_types import Role, blocks_of, bytes_before_table, data_bytes

_OF_EACH_ITEM = 0.5
_OUTSIDE_OF_BLOCKS = (Role.STORAGE, Role.DATA, Role.NODE, Role.SAVED)
_GC_HEADER_BYTES = 16
_MUCH_MORE, _WORTH_A_LINK = 2, 4096
"""Times what the tensor shows of it, and bytes: a number on a GPU has a block of 512."""
_PAYLOADS = (Role.STORAGE, Role.DATA)
"""Memory without a Python object of its own: its tensor or array stands for it in a path."""


class Weight(NamedTuple):
    """What some items keep alive."""

    items: int
    objects: int
    """So many things were reached, graph nodes and blocks of memory among them."""
    exclusive_bytes: float
    """What these items keep alive and nothing else does, divided by their number."""
    parts: dict[str, float]
    """`exclusive_bytes` by kind: tensors, shared memory, saved, nodes, arrays, python."""
    shared_bytes: int
    """All that was reached and would stay if the items went. Each thing once, not per item."""
    biggest: str
    """Type of the biggest single thing in the biggest part."""
    longest: tuple[tuple[str, str], ...]
    """(how, type) link by link from an item to that thing."""
    item: str
    """That item, in words: of a list with large things and small ones, not just any."""
    is_cut: bool
    """True when there was more than wanted: `exclusive_bytes` is then a lower bound."""
    on_device: Mapping[str, float] = MappingProxyType({})
    """Of `exclusive_bytes`, what lies on devices, by their names."""
    gap: str | None = None
    """Why something could not be read."""
    opaque: Mapping[str, float] = MappingProxyType({})
    """How many of each kind were reached, per item, whose memory cannot be weighed."""
    sites: tuple[SiteTally, ...] = ()
    """Lines that made those."""
    in_blocks: Blocks = NO_BLOCKS
    """Of `exclusive_bytes`, what lies in Python's blocks, per item."""


def weigh(
    items: list[Any],
    *,
    most_objects: int = 30_000,
    ignore: Set[int] = frozenset(),
    ours: Mapping[int, int] = MappingProxyType({}),
    given: Given = NOTHING_GIVEN,
    alike: Mapping[int, int] = MappingProxyType({}),
) -> Weight:
    """What the items keep alive, and nothing else does, per item.

    `ignore` has ids of objects not to go to, `ours` how many references of the caller's own there
    are to an object, by its id; `given` is what a device's allocator has given out. `alike` has the
    references of others like the items: what those hold as well is the items' in part.
    Graphs that another live tensor leads to as well count as the
    items' own: finding those takes a look at the whole heap (see `retained_by_graph`).
    """
    not_counted = Counter(ours) + Counter(alike) if alike else ours
    reached = Reached(most_objects, ignore, not_counted, given)
    try:
        with quiet_collector(), autograd.without_torch_functions():
            reached.explore(items)
            held = reached.held_by_references()
            owners = reached.find_owners(held, by_several=TOGETHER)
            return _add_up(reached, with_lent(reached, owners), _portions(reached, alike))
    except Exception as error:  # noqa: BLE001 - the program goes on, and the reason is told
        gap = f"{type(error).__name__}: {error}"
        return Weight(len(items), 0, 0.0, {}, 0, "", (), "", True, gap=gap)


def retained_by_graph(tensor: Any, *, most_objects: int = 1_000_000) -> int | None:
    """Bytes of storages and arrays that go when the program's last reference to the tensor goes.

    The collector may have to run for it. What others hold stays, and is not counted: parameters
    and inputs, by the references to them that Python and PyTorch count, and the part of the graph
    that leads to another live tensor. To find those all live tensors are visited (some 45 ms at
    180,000 objects); the ones that `gc.freeze` hides from the collector are missed. An edit in
    place through a view (`x[2:4] *= y`) saves its tensors where Python cannot see them: then this
    is a lower bound. None where it could not be read.
    """
    reached = Reached(most_objects, frozenset())
    try:
        with quiet_collector(), autograd.without_torch_functions():
            reached.explore([tensor])
            held = _held(reached, most_objects)
            held += _held_by_themselves(reached, reached.find_owners(held))
            owners = reached.find_owners(held)
            return sum(
                size
                for size, role, owner in zip(reached.sizes, reached.roles, owners, strict=True)
                if role in _PAYLOADS and owner != SHARED
            )
    except Exception:  # noqa: BLE001 - the program goes on
        return None


def _held(reached: Reached, most_nodes: int) -> list[int]:
    return [*reached.held_by_references(), *reached.held_by_other_graphs(most_nodes)]


def _held_by_themselves(reached: Reached, owners: list[int]) -> list[int]:
    """C++ nodes in a circle of references, which no collector ever frees: it does not see into
    them. Made by a pack hook that hands back the very output it was given, as `save_on_cpu` does
    for tensors that are there already (measured: freed by `del` 4 of 8,196 bytes, by the collector
    none). Circles through a Function's ctx alone are collected, and count as freed."""
    ways = {
        number: [referent for referent in reached.references[number] if owners[referent] != SHARED]
        for number, owner in enumerate(owners)
        if owner != SHARED
    }
    return [
        number
        for number in in_circles(ways)
        if reached.roles[number] is Role.NODE
        and not flags_of(type(reached.things[number])) & HEAP_TYPE
    ]


# ── the sum ──────────────────────────────────────────────────────────────────


def _portions(reached: Reached, alike: Mapping[int, int]) -> list[float]:
    """Of each thing, what is the items': of one that two refer to, one of them an item, half. So it
    is with all that was found through it."""
    portions = [1.0] * len(reached.things)
    if alike:
        for number in range(reached.items, len(reached.things)):
            # The memory under an array has no object.
            is_thing = reached.roles[number] is not Role.DATA
            theirs = alike.get(id(reached.things[number]), 0) if is_thing else 0
            mine = max(reached.counted[number], 1)
            portions[number] = mine / (mine + theirs) * portions[reached.found_by[number]]
    return portions


def _add_up(reached: Reached, owners: list[int], portions: list[float]) -> Weight:
    parts: dict[str, float] = {}
    shared, blocks, in_blocks = 0, 0.0, 0.0
    before_table: dict[int, int] = {}
    for number, owner in enumerate(owners):
        part, size = reached.parts[number], reached.sizes[number]
        if owner == SHARED:
            shared += size
            continue
        its_blocks, its_bytes = _blocks_of(reached, number, before_table)
        portion = portions[number]
        blocks, in_blocks = blocks + portion * its_blocks, in_blocks + portion * its_bytes
        # A number of 24 bytes takes a block of 32.
        parts[part] = parts.get(part, 0.0) + portion * max(size, its_bytes) / reached.items
    on_device: dict[str, float] = {}
    for number, device in reached.on_device.items():
        if owners[number] != SHARED:
            its = portions[number] * reached.sizes[number] / reached.items
            on_device[device] = on_device.get(device, 0.0) + its
    unseen, opaque = _opaque_things(reached)
    payload = _find_biggest(reached, owners, max(parts, key=parts.__getitem__, default=""))
    biggest = None if payload is None else _shown_for(reached, payload)
    way = [] if biggest is None else _way_to(reached, biggest)
    return Weight(
        items=reached.items,
        objects=len(reached.things),
        exclusive_bytes=sum(parts.values(), 0.0),
        parts=parts,
        shared_bytes=shared,
        biggest="" if biggest is None else _describe(reached, biggest),
        longest=(*_links_along(reached, way), *_links_to_whole(reached, payload, biggest)),
        item=describe(reached.things[way[0]]) if way else "",
        is_cut=reached.is_cut,
        on_device=on_device,
        gap=reached.gap,
        opaque=opaque,
        sites=origins.sites_of(unseen),
        in_blocks=Blocks(blocks, in_blocks).times(1 / max(reached.items, 1)),
    )


def _blocks_of(reached: Reached, number: int, before_table: dict[int, int]) -> tuple[float, float]:
    """How many of Python's blocks, and bytes in them. `before_table` has what is known of types."""
    role = reached.roles[number]
    if role in _OUTSIDE_OF_BLOCKS:
        return 0, 0
    thing = reached.things[number]
    if role is Role.TENSOR:  # the rest of it is C++'s
        return blocks_of(object.__sizeof__(thing) + _GC_HEADER_BYTES)
    kind = type(thing)
    before = before_table.get(id(kind))
    if before is None:
        before = before_table[id(kind)] = bytes_before_table(kind)
    beside = reached.beside.get(number)
    if beside is None:
        return blocks_of(reached.sizes[number], before)
    blocks, in_blocks = blocks_of(reached.sizes[number] - int(beside.bytes), before)
    return blocks + beside.number, in_blocks + beside.bytes


def _opaque_things(reached: Reached) -> tuple[list[Any], dict[str, float]]:
    """Those that the items lead to, and how many of each kind there are per item.

    Who else refers to them does not show: TensorFlow's tensors and operations refer to their graph
    from C++. But where items come with one each, they come with the items; where all share a few,
    those are in use and no item's own."""
    things = [
        thing
        for thing, role in zip(reached.things, reached.roles, strict=True)
        if role is Role.OPAQUE
    ]
    counts = Counter(class_name(type(thing)) for thing in things)
    per_item = {name: count / max(reached.items, 1) for name, count in counts.items()}
    own = {name: count for name, count in per_item.items() if count >= _OF_EACH_ITEM}
    return [thing for thing in things if class_name(type(thing)) in own], own


def _find_biggest(reached: Reached, owners: list[int], part: str) -> int | None:
    """The biggest thing of a part that an item keeps alive alone."""
    candidates = (
        number
        for number, owner in enumerate(owners)
        if owner != SHARED and reached.parts[number] == part
    )
    return max(candidates, key=reached.sizes.__getitem__, default=None)


def _shown_for(reached: Reached, number: int) -> int:
    """The object that stands for it."""
    while reached.roles[number] in _PAYLOADS and number >= reached.items:
        number = reached.found_by[number]
    return number


# ── the path ─────────────────────────────────────────────────────────────────


def _way_to(reached: Reached, number: int) -> list[int]:
    """From an item to there."""
    way = [number]
    while way[0] >= reached.items:
        way.insert(0, reached.found_by[way[0]])
    return way


def _links_along(reached: Reached, way: list[int]) -> list[tuple[str, str]]:
    """How an item leads there, link by link. Of a graph only its first node is named: the way
    through it is long and tells nothing."""
    return [
        (reached.found_via[held] or _name_of(reached, holder, held), _describe(reached, held))
        for holder, held in pairwise(way)
        if not _is_passed_by(reached, holder, held)
    ]


def _links_to_whole(
    reached: Reached, payload: int | None, shown: int | None
) -> list[tuple[str, str]]:
    """To the memory of a tensor that is a small part of it: `rows[3]` keeps all rows, and nothing
    that Python sees says so."""
    if payload is None or shown is None or reached.roles[shown] is not Role.TENSOR:
        return []
    # What a graph has saved is its business: no copy of the item would change it.
    if reached.roles[payload] is not Role.STORAGE or reached.parts[payload] != TENSORS:
        return []
    size = reached.sizes[payload]
    if size < max(_MUCH_MORE * data_bytes(reached.things[shown]), _WORTH_A_LINK):
        return []
    return [(WHOLE, f"{class_name(type(reached.things[payload]))} [{size}] uint8")]


def _is_passed_by(reached: Reached, holder: int, held: int) -> bool:
    """True for what nobody means who names what is behind it."""
    if type(reached.things[holder]) is FunctionType:
        return reached.things[held] is reached.things[holder].__closure__
    if reached.roles[holder] is reached.roles[held] is Role.NODE:
        return True
    return type(reached.things[held]) is CellType or _is_namespace(reached, holder, held)


def _describe(reached: Reached, number: int) -> str:
    thing = reached.things[number]
    if reached.roles[number] is Role.TENSOR:
        return autograd.describe_tensor(thing)
    if reached.roles[number] is Role.FOREIGN:
        return foreign.describe_tensor(thing)
    if reached.roles[number] is Role.ARRAY:
        return describe(thing)
    return class_name(type(thing))


def _is_namespace(reached: Reached, holder: int, held: int) -> bool:
    """True for the `__dict__` of an object."""
    return (
        type(reached.things[held]) is dict
        and reached.roles[holder] in (Role.INSTANCE, Role.NODE, Role.TENSOR)
        and not reached.found_via[held]
        and _attributes_of(reached.things[holder]) is reached.things[held]
    )


def _name_of(reached: Reached, holder: int, held: int) -> str:
    """How a reader would say it, where that can be found without running anybody's code."""
    owner, thing = reached.things[holder], reached.things[held]
    if reached.roles[holder] is Role.DICT:
        name = _key_of(owner, thing)
        above = reached.found_by[holder]
        if above >= 0 and _is_namespace(reached, above, holder):
            return f".{name}"
        # A long key, or one of a large table, is data of the program and no name.
        is_shown = name and len(name) <= LONGEST_KEY and dict.__len__(owner) <= KEYS_SHOWN
        return f"[{name!r}]" if is_shown else "[x]"
    if reached.roles[holder] is Role.INSTANCE:
        return f".{_key_of(_attributes_of(owner) or {}, thing) or 'x'}"
    if type(owner) is CellType:
        return f"closure {_variable_of(reached, holder)}".rstrip()
    if type(owner) is FunctionType:
        return "defaults"
    for name, value in _slots_of(owner):
        if value is thing:
            return f".{name}"
    return "[x]"


def _variable_of(reached: Reached, cell: int) -> str:
    """The name that the function around a cell has for it."""
    function = reached.things[reached.found_by[reached.found_by[cell]]]
    if type(function) is FunctionType:
        for name, its in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            if its is reached.things[cell]:
                return name
    return ""


def _key_of(namespace: Any, thing: Any) -> str:
    for key, value in dict.items(namespace):
        if value is thing and type(key) is str:
            return key
    return ""


def _attributes_of(thing: Any) -> Any:
    """The `__dict__` of an object, whatever its class says. Asking for it makes Python set one up
    (some 100 bytes, once), so only objects on a path that is drawn are asked."""
    for base in mro_of(type(thing)):
        getter = namespace_of(base).get("__dict__")
        if type(getter) is GetSetDescriptorType:
            return getter.__get__(thing)
    return None


def _slots_of(thing: Any) -> Iterator[tuple[str, Any]]:
    for base in mro_of(type(thing)):
        for name, slot in namespace_of(base).items():
            if type(slot) is MemberDescriptorType:
                try:
                    yield name, slot.__get__(thing)
                except AttributeError:  # declared, and not set
                    continue
