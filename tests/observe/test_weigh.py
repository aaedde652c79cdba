"""Each item of what grows is given its own weight, and no more."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakscope.observe.autograd import reachable_nodes
from leakscope.observe.leads import Lead, our_references
from leakscope.observe.native_heap import open_native_heap
from leakscope.observe.weigh import Weight, retained_by_graph, weigh
from leakscope.observe.weighing import weigh_all, weighed

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = torch.nn

pytestmark = pytest.mark.torch


def test_kept_losses_weigh_what_malloc_gave() -> None:
    """Breaks when the constants for nodes and tensors no longer fit this torch."""
    read = open_native_heap().read
    if read is None:
        pytest.skip("this allocator keeps no counters")
    model, inputs = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)), torch.randn(2, 8)
    for after_backward in (False, True):
        kept: list[Any] = [None] * 500
        model(inputs).mean().backward()
        before = read()[0]
        for step in range(len(kept)):
            kept[step] = model(inputs).mean()
            if after_backward:
                kept[step].backward()
        each = (read()[0] - before) / len(kept)
        weight = weigh(kept[100:110])
        assert weight.items == 10
        assert weight.exclusive_bytes == pytest.approx(each, rel=0.2)
        assert ("saved" in weight.parts) is not after_backward


@pytest.mark.parametrize(
    "carry",
    [
        lambda state, p: 0.9 * state + 0.1 * p,
        lambda state, p: torch.lerp(state, p, 0.1),
        lambda state, p: torch.tanh(state),
        lambda state, p: state.mul(0.9),
    ],
)
def test_a_state_that_carries_its_graph_weighs_what_malloc_gave(
    carry: Callable[[Any, Any], Any],
) -> None:
    """Breaks when numbers that a graph has saved are taken for eight bytes: each is a tensor, and
    four tenths of an average of weights were nobody's."""
    read = open_native_heap().read
    if read is None:
        pytest.skip("this allocator keeps no counters")
    parameter = nn.Parameter(torch.randn(48, 32))
    state = parameter * 1.0
    for _ in range(20):
        state = carry(state, parameter)
    before, steps = read()[0], 300
    for _ in range(steps):
        state = carry(state, parameter)
    grown = read()[0] - before
    nodes = graph_size(state)
    lead = Lead("graph", state, 0, nodes, [], [])
    each = weighed(lead, frozenset(), {}).each
    assert each * nodes * steps / (steps + 20) == pytest.approx(grown, rel=0.2)


def graph_size(tensor: Any) -> int:
    return len(reachable_nodes([tensor.grad_fn], 100_000))


# ── weights ──────────────────────────────────────────────────────────────────


@st.composite
def references(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], list[int]]:
    size = draw(st.integers(1, 25))
    place = st.integers(0, size - 1)
    pairs = draw(st.lists(st.tuples(place, place), max_size=60))
    items = draw(st.lists(place, min_size=1, max_size=5, unique=True))
    return size, pairs, items


@given(references())
@settings(max_examples=100, deadline=None)
def test_what_nothing_else_holds_is_all_the_items_own(
    graph: tuple[int, list[tuple[int, int]], list[int]],
) -> None:
    """Breaks when something is counted twice or left out; in circles too."""
    size, pairs, chosen = graph
    lists: list[list[Any]] = [[] for _ in range(size)]
    for holder, held in pairs:
        lists[holder].append(lists[held])
    sizes = [_in_blocks(one) for one in lists]
    reached = {item: _reachable(item, pairs) for item in chosen}
    times = [sum(place in of for of in reached.values()) for place in range(size)]
    items = [lists[item] for item in chosen]
    # What no item leads to would refer to some things from outside.
    lists = [one for place, one in enumerate(lists) if not times[place]]
    for one in lists:
        one.clear()
    del lists
    weight = weigh(items)
    exclusive = sum(sizes[place] for place in range(size) if times[place])
    assert weight.exclusive_bytes * len(items) == pytest.approx(exclusive)
    assert weight.shared_bytes == 0
    assert weight.objects == sum(count > 0 for count in times)


def _in_blocks(one: list[Any]) -> int:
    """A list and its table, each in a block of 16, 32, 48, ... bytes; all of malloc's as it is."""
    table = sys.getsizeof(one) - sys.getsizeof([])
    return max(sys.getsizeof(one), _aligned(sys.getsizeof([])) + _aligned(table) * (table <= 512))


def _aligned(size: int) -> int:
    return (size + 15) // 16 * 16


def _reachable(start: int, pairs: list[tuple[int, int]]) -> set[int]:
    seen, waiting = {start}, [start]
    while waiting:
        place = waiting.pop()
        new = {held for holder, held in pairs if holder == place} - seen
        seen |= new
        waiting += new
    return seen


class Record:
    def __init__(self, payload: Any) -> None:
        self.payload = payload


class Slotted:
    __slots__ = ("empty", "payload")

    def __init__(self, payload: Any) -> None:
        self.payload = payload


def text() -> str:
    return "x" * 10_000


def closing(payload: Any) -> Callable[[], Any]:
    return lambda: payload


def asked() -> Record:
    """Has a `__dict__` of its own: Python makes one when it is asked for."""
    record = Record(None)
    record.__dict__["payload"] = [text()]
    return record


PATHS: dict[str, tuple[Callable[[], Any], list[tuple[str, str]]]] = {
    "item": (lambda: [text()], [("[x]", "str")]),
    "key": (lambda: {"name": [text()]}, [("['name']", "list"), ("[x]", "str")]),
    "attribute": (lambda: Record(text()), [(".payload", "str")]),
    "attribute in a dict": (asked, [(".payload", "list"), ("[x]", "str")]),
    "slot": (lambda: Slotted((text(),)), [(".payload", "tuple"), ("[x]", "str")]),
    "closure": (lambda: closing(text()), [("closure payload", "str")]),
    "view": (lambda: np.zeros((100, 100))[:2], [(".base", "ndarray [100, 100] float64")]),
    "graph": (
        lambda: nn.Linear(512, 1)(torch.randn(64, 512) * 2).mean(),
        [(".grad_fn", "MeanBackward0"), ("saved mat1", "Tensor [64, 512] float32")],
    ),
}


@pytest.mark.parametrize("name", PATHS)
def test_paths_read_as_the_program_is_written(name: str) -> None:
    """Breaks when the drawing of a holding loses its names."""
    make, expected = PATHS[name]
    # Made outside of the assertion, which keeps what it has computed.
    weight = weigh([make()])
    assert list(weight.longest) == expected
    assert weight.biggest == expected[-1][1]


def test_what_the_rest_of_the_program_holds_is_shared() -> None:
    """Breaks when a cache is blamed for the data set it points into."""
    data_set = [torch.zeros(1000) for _ in range(3)]
    weight = weigh([Record(tensor) for tensor in data_set])
    assert weight.exclusive_bytes < 500
    assert weight.shared_bytes > 12_000
    weight = weigh([[torch.zeros(1000)], [torch.zeros(3000)]])
    assert weight.parts["tensors"] == pytest.approx(8000, rel=0.1)


def test_what_the_items_hold_together_is_divided_among_them() -> None:
    """Breaks when a batch that two kept samples were cut from counts for neither, or for each."""
    common = torch.zeros(1000)
    items = [[common], [common]]
    del common
    weight = weigh(items)
    assert weight.parts["tensors"] == pytest.approx(2000, rel=0.2)
    assert weight.shared_bytes == 0


def test_references_of_the_caller_are_not_the_programs() -> None:
    items = [[torch.zeros(1000)] for _ in range(4)]
    inside = [one[0] for one in items]
    assert weigh(items).parts.get("tensors", 0) < 500
    ours = {id(tensor): 1 for tensor in inside}
    assert weigh(items, ours=ours).parts["tensors"] == pytest.approx(4000, rel=0.2)


def test_arrays_count_where_their_memory_is() -> None:
    """Breaks when a small view hides a big array, or one memory is counted twice."""
    view = np.zeros(10_000)[:1]
    assert weigh([view]).parts["arrays"] == pytest.approx(80_000, rel=0.01)
    array = np.zeros(10_000)
    weight = weigh([[array, torch.from_numpy(array)]])
    assert weight.exclusive_bytes + weight.shared_bytes == pytest.approx(80_000, rel=0.02)
    tensor = torch.zeros(10_000)
    from_tensor = [tensor.numpy()]
    del tensor
    assert weigh([from_tensor]).exclusive_bytes == pytest.approx(40_000, rel=0.05)
    boxed = np.empty(2, dtype=object)
    boxed[0] = "x" * 5000 + str(view)
    assert weigh([boxed]).parts["python"] > 5000


def test_shared_memory_is_a_part_of_its_own() -> None:
    """Breaks when tensors that came from another process look like any other."""
    kept = [torch.zeros(10_000).share_memory_()]
    weight = weigh(kept)
    assert weight.parts["shared memory"] == pytest.approx(40_000, rel=0.05)
    assert weight.parts["tensors"] < 1000
    assert "shared memory" not in weigh([torch.zeros(10_000)]).parts


def test_functions_and_tracebacks_are_followed_but_not_into_globals() -> None:
    """Breaks when a callback's closure is not seen, or a module is weighed with it."""

    def failing() -> None:
        payload = bytearray(20_000)
        raise ValueError(len(payload))

    weight = weigh([closing(bytearray(10_000))])
    assert weight.exclusive_bytes == pytest.approx(10_000, rel=0.1)
    assert weight.objects < 20
    try:
        failing()
    except ValueError as error:
        caught = error
    weight = weigh([caught])
    caught.__traceback__ = None
    assert weight.exclusive_bytes == pytest.approx(20_000, rel=0.1)
    assert not weight.is_cut
    assert weigh([sys]).objects == weigh([Record]).objects == 0


def test_sizes_are_what_python_gave() -> None:
    """Breaks when attributes, keys or the buffers of subclassed containers are not counted."""

    class Stack(list):  # type: ignore[type-arg]
        def __sizeof__(self) -> int:
            return 10**9

    stack = Stack([None]) * 1000
    assert weigh([stack]).exclusive_bytes == pytest.approx(8000, rel=0.05)
    keyed = {f"a key {place} of some length": None for place in range(100)}
    keys = sum(_aligned(sys.getsizeof(key)) for key in keyed)
    assert weigh([keyed]).exclusive_bytes == sys.getsizeof(keyed) + keys
    # 96 bytes on Python 3.11 with three attributes, by tracemalloc.
    plain = Record(None)
    assert 64 <= weigh([plain]).exclusive_bytes <= 120


def test_no_code_of_the_program_runs() -> None:
    """Breaks when a class of the program's is asked anything."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the program's code ran")

    names = ("__getattribute__", "__eq__", "__hash__", "__len__", "__sizeof__", "__iter__", "keys")
    meta_names = ("__instancecheck__", "__subclasscheck__", "__hash__", "__eq__")
    meta = type("Meta", (type,), {})
    hostile: Any = meta("Hostile", (dict,), {"__class__": property(refuse)})
    for name in names:
        setattr(hostile, name, refuse)
    thing = hostile(payload=bytearray(9000))
    dict.__setitem__(thing, "self", thing)
    for name in (*meta_names, "__getattribute__"):
        setattr(meta, name, refuse)
    items = [[thing]]
    del thing
    weight = weigh(items)
    retained = retained_by_graph(torch.ones(3, requires_grad=True) * 2)
    type.__delattr__(meta, "__getattribute__")
    assert weight.gap is None
    assert weight.exclusive_bytes == pytest.approx(9000, rel=0.1)
    assert retained is not None


def test_no_more_objects_than_wanted_and_none_that_are_ours() -> None:
    """Breaks when a look at a huge structure takes seconds, or weighs the observer."""
    ours = [bytearray(50_000)]
    item = [[bytearray(100) for _ in range(1000)], ours]
    assert weigh([item], ignore={id(ours)}).exclusive_bytes < 200_000
    cut = weigh([item], most_objects=100)
    assert (cut.is_cut, cut.objects) == (True, 100)
    assert cut.exclusive_bytes < weigh([item]).exclusive_bytes
    assert not weigh([item]).is_cut


def test_nothing_to_weigh() -> None:
    """Breaks when an empty list divides by zero."""
    assert weigh([]) == Weight(0, 0, 0.0, {}, 0, "", (), "", False)
    assert weigh([None, True, sys]).exclusive_bytes == 0


def test_without_torch_and_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a program without them cannot be weighed."""
    for name in ("torch", "numpy"):
        monkeypatch.delitem(sys.modules, name)
    weight = weigh([Record(bytearray(5000))])
    assert weight.gap is None
    assert weight.exclusive_bytes == pytest.approx(5000, rel=0.1)
    assert weight.longest == ((".payload", "bytearray"),)


def test_what_was_weighed_can_go() -> None:
    """Breaks when a weighed thing is kept by the look at it."""
    item = Record([Record("x")])
    ends = [weakref.ref(item), weakref.ref(item.payload[0])]
    gc.disable()
    try:
        weight = weigh([item])
        del item
        assert [end() for end in ends] == [None, None]
    finally:
        gc.enable()
    assert weight.objects >= 3


@pytest.mark.parametrize("container", [list, tuple, set])
def test_many_numbers_weigh_what_they_take(container: Callable[[Any], Any]) -> None:
    """Far more of them than may be visited one by one."""
    kept = [container(range(1000 + n, 40_000 + n)) for n in range(0, 200_000, 50_000)]
    weight = weigh(kept, most_objects=1000)
    true_bytes = sys.getsizeof(kept[0]) + 32 * len(kept[0])
    assert weight.exclusive_bytes == pytest.approx(true_bytes, rel=0.02)
    assert not weight.is_cut


def test_numbers_that_others_hold_too_weigh_nothing() -> None:
    numbers = list(range(1000, 40_000))
    kept = [list(numbers) for _ in range(4)]
    weight = weigh(kept, most_objects=1000)
    assert weight.exclusive_bytes == pytest.approx(sys.getsizeof(kept[0]), rel=0.02)


def test_items_that_keep_something_by_threes_are_weighed_whole() -> None:
    """Three callbacks of one dataset keep its data: at the ends of a sample one or two of the three
    are in it, and the data is not counted. Breaks when that makes each of them lighter."""
    size = 1 << 20
    kept: list[list[bytearray]] = []
    for _ in range(30):
        data = bytearray(size)
        kept += [[data], [data], [data]]
    del data
    for offset in range(3):
        newest = list(reversed(kept[: len(kept) - offset]))
        items, older = newest[:6], newest[6:24]
        lead = Lead("container", kept, 0, len(kept), items, [], older=older)
        ours = our_references([lead])
        ours.update(map(id, newest))
        (one,) = weigh_all([lead], frozenset({id(kept), id(newest)}), ours)
        assert one.each == pytest.approx(size / 3, rel=0.06)
        assert sum(one.parts.values()) == pytest.approx(one.each)
