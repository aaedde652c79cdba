"""What grows is found where it is held, with what one more item keeps, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from heap_builder import HERE, LIBRARY, Heap

from leakscope.heap.groups import Groups, read_groups
from leakscope.heap.growth import Growing, Growth, find_growth
from leakscope.heap.holdings import holdings_of
from leakscope.heap.links import say
from leakscope.heap.unreached import HIDDEN_CYCLE
from leakscope.model import Holding, HoldingKind, Moment, Snapshot
from leakscope.record.snapshot_file import EdgeRole, ExtraEdge, ExtraNode, OtherRoot

Build = Callable[[Heap, int], None]
STEPS = (10, 20, 30)


def snapshots(tmp_path: Path, build: Build, steps: Sequence[int] = STEPS) -> list[Groups]:
    """A program's snapshots: `build` makes its heap as it is at a step."""
    found = []
    for number, step in enumerate(steps, 1):
        heap = Heap()
        build(heap, step)
        groups = read_groups(heap.write(tmp_path / f"{number}.heap", number=number, step=step))
        assert groups is not None
        found.append(groups)
    return found


def growth_of(tmp_path: Path, build: Build, steps: Sequence[int] = STEPS) -> Growth:
    return find_growth(snapshots(tmp_path, build, steps), steps)


def only(growth: Growth) -> Growing:
    [one] = growth.growing
    return one


def path_of(one: Growing) -> list[str]:
    return [link.via for link in say(one).path]


def holder_of(one: Growing) -> list[str]:
    said = say(one)
    return [link.via for link in said.path[: said.grows_at + 1]]


# ── what grows ──


def test_the_way_to_a_container_may_change(tmp_path: Path) -> None:
    """Breaks when a list that a coroutine has is lost because the coroutine runs at one snapshot
    and waits in a task at the next."""

    def build(heap: Heap, step: int) -> None:
        history = heap.add("list", 56)
        broker = heap.instance("Broker", 64, history=history)
        for _ in range(step):
            heap.refer(history, heap.add("Record", 500))
        if step == STEPS[1]:
            task = heap.instance("Task", 80, broker=broker)
            heap.module("asyncio", LIBRARY, tasks=heap.items("list", task))
        else:
            heap.local(broker, "broker", "main")

    growing = only(growth_of(tmp_path, build))
    assert growing.counts == ((10, 10), (20, 20), (30, 30))
    assert holder_of(growing)[-1] == ".history"


def test_memory_of_unknown_size_is_counted(tmp_path: Path) -> None:
    """Breaks when a graph whose native bytes nobody can tell is not told with what keeps it."""

    def build(heap: Heap, step: int) -> None:
        graphs = [heap.add("FuncGraph", 64) for _ in range(step)]
        for graph in graphs:
            heap.extra_nodes.append(ExtraNode(graph + 8, "FuncGraph", 0, "", "opaque"))
            heap.extra_edges.append(ExtraEdge(graph, graph + 8, EdgeRole.STORAGE))
        heap.module("__main__", HERE, kept=heap.items("list", *graphs))

    [holding] = _holdings(tmp_path, build)
    assert holding.opaque == {"FuncGraph": 1.0}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ((1, 0, 0), HoldingKind.GARBAGE),
        ((0, 0, 0), HoldingKind.CYCLE),
        ((1, 500, 500), HoldingKind.GARBAGE),
        ((1, 500, 900), HoldingKind.FROZEN),
    ],
)
def test_garbage_that_no_collection_reaches(
    tmp_path: Path, values: tuple[int, int, int], kind: HoldingKind
) -> None:
    """Breaks when garbage that was frozen, or that nobody collects, is said to go by itself."""

    def build(heap: Heap, step: int) -> None:
        for _ in range(step):
            one = heap.instance("Node", 500)
            heap.refer(one, heap.instance("Node", 500, parent=one), EdgeRole.ATTRIBUTE, "child")

    is_on, first, last = values
    found = _holdings(
        tmp_path,
        build,
        [{"gc_enabled": is_on, "frozen_count": count} for count in (first, first, last)],
    )
    assert {one.kind for one in found} == {kind}


def _holdings(
    tmp_path: Path, build: Build, values: Sequence[dict[str, int]] = ({}, {}, {})
) -> list[Holding]:
    snapshots(tmp_path, build)
    files = [tmp_path / f"{number}.heap" for number in (1, 2, 3)]
    headers = [
        Snapshot(Moment(0, step, step), "1", number, "growth", "api", "", 1, 1, 1, known)
        for number, (step, known) in enumerate(zip(STEPS, values, strict=True), 1)
    ]
    return holdings_of(files, headers)


def test_items_of_a_list(tmp_path: Path) -> None:
    """Breaks when the holder, the count or the bytes of a growing list are wrong."""

    def build(heap: Heap, step: int) -> None:
        records = [heap.instance("Record", 40, x=heap.array(10)) for _ in range(step)]
        heap.module("__main__", HERE, history=heap.items("list", *records), other=heap.add())

    growth = growth_of(tmp_path, build)
    one = only(growth)
    assert path_of(one) == ["module train", ".history", "[x]", ".x"]
    assert (one.kind, one.holder, one.item, one.holders) == ("container", 1, 2, 1)
    assert one.counts == ((10, 10), (20, 20), (30, 30))
    assert one.bytes_grown == 20 * (8 + 40 + 112 + 80)
    assert one.bytes_per_item == 8 + 40 + 192
    assert one.parts == {"arrays": 20 * 80, "python": 20 * 160}
    assert one.share == 1.0
    assert growth.rest_bytes == 0
    assert [bytes_ for _, bytes_ in growth.visible][-1] - growth.visible[0][1] == one.bytes_grown
    assert say(one).item == "Record"
    assert one.blocks.number == 20 * 2  # the table of the list is a block at each time
    assert len(one.addresses) == 30


def test_what_a_record_refers_to_is_not_told_again(tmp_path: Path) -> None:
    """Breaks when attributes of items are findings of their own."""

    def build(heap: Heap, step: int) -> None:
        shared = heap.add("Config", 5000)
        records = [
            heap.instance("Record", a=heap.add("A"), b=heap.items("list", heap.add("B")), c=shared)
            for _ in range(step)
        ]
        heap.local(heap.items("list", *records), "rows")

    one = only(growth_of(tmp_path, build))
    assert holder_of(one) == ["local rows in main()"]


def test_several_attributes_are_several_findings(tmp_path: Path) -> None:
    """Breaks when two lists of one object are told as one, or one of them not at all."""

    def build(heap: Heap, step: int) -> None:
        trainer = heap.instance(
            "Trainer",
            losses=heap.items("list", *(heap.add("Loss", 100) for _ in range(step))),
            grads=heap.items("dict", *(heap.add("Grad", 300) for _ in range(step))),
        )
        heap.module("__main__", HERE, trainer=trainer)

    growth = growth_of(tmp_path, build)
    assert [holder_of(one) for one in growth.growing] == [
        ["module train", ".trainer", ".grads"],
        ["module train", ".trainer", ".losses"],
    ]
    assert sum(one.share for one in growth.growing) == pytest.approx(1)


def test_a_list_in_each_of_many(tmp_path: Path) -> None:
    """Breaks when lists of a fixed number of objects are not told together."""

    def build(heap: Heap, step: int) -> None:
        layers = [
            heap.instance("Layer", seen=heap.items("list", *(heap.add("T") for _ in range(step))))
            for _ in range(7)
        ]
        heap.module("__main__", HERE, layers=heap.items("list", *layers))

    one = only(growth_of(tmp_path, build))
    assert holder_of(one) == ["module train", ".layers", "[x]", ".seen"]
    assert (one.holders, one.counts[-1]) == (7, (30, 210))


def test_keys_and_lists_that_both_grow(tmp_path: Path) -> None:
    """Breaks when a dict of lists is told by its lists although it gets more of them."""

    def build(heap: Heap, step: int) -> None:
        users = heap.add("dict", 500)
        for _ in range(step):
            entries = [heap.add("Event", 50) for _ in range(step // 2)]
            heap.refer(users, heap.items("list", *entries))
            heap.refer(users, heap.add("str", 40, is_tracked=False), EdgeRole.KEY)
        heap.module("__main__", HERE, by_user=users)

    one = only(growth_of(tmp_path, build))
    assert holder_of(one) == ["module train", ".by_user"]
    assert one.counts == ((10, 10), (20, 20), (30, 30))


def test_lists_that_grow_while_one_more_comes_now_and_then(tmp_path: Path) -> None:
    """Breaks when two new sessions are told as the cause of what all sessions collect."""

    def build(heap: Heap, step: int) -> None:
        sessions = [heap.add("Session", 90, module="__main__") for _ in range(60)]
        logs = [heap.add("list", 100) for _ in range(60)]
        alive = slice(50 + step // 10)
        for session, log in list(zip(sessions, logs, strict=True))[alive]:
            heap.refer(session, log, EdgeRole.ATTRIBUTE, "log")
            for _ in range(step):
                heap.refer(log, heap.add("Event", 90))
        heap.module("__main__", HERE, sessions=heap.items("list", *sessions[alive]))

    growth = growth_of(tmp_path, build)
    assert holder_of(growth.growing[0]) == ["module train", ".sessions", "[x]", ".log"]
    assert growth.growing[0].share > 0.95


def test_handlers_that_share_what_they_buffer(tmp_path: Path) -> None:
    """Breaks when handlers that are added again and again are not told because the first of them
    is the first to hold what all of them hold."""

    def build(heap: Heap, step: int) -> None:
        handlers = [heap.add("Handler", 100, module="__main__") for _ in range(30)][:step]
        records = [heap.add("Record", 4000) for _ in range(step)]
        for handler in handlers:
            heap.refer(handler, heap.items("list", *records), EdgeRole.ATTRIBUTE, "buffer")
        heap.module("__main__", HERE, handlers=heap.items("list", *handlers))

    assert holder_of(only(growth_of(tmp_path, build))) == ["module train", ".handlers"]


@pytest.mark.parametrize("kind", ["bytes", "ndarray", "Storage"])
def test_one_thing_that_gets_larger(tmp_path: Path, kind: str) -> None:
    """Breaks when an array that is built again, larger each time, is not found."""

    def build(heap: Heap, step: int) -> None:
        if kind == "ndarray":
            table = heap.array(step, 100)
        elif kind == "bytes":
            table = heap.add("bytes", 33 + 800 * step, is_tracked=False)
        else:
            table = heap.add("Tensor", 80, module="torch")
            heap.extra_nodes.append(ExtraNode(0x9000, "Storage", 800 * step, "cuda:0", "tensors"))
            heap.extra_edges.append(ExtraEdge(table, 0x9000, EdgeRole.STORAGE))
        heap.module("__main__", HERE, table=table)

    one = only(growth_of(tmp_path, build))
    assert holder_of(one) == ["module train", ".table"]
    assert (one.kind, one.bytes_grown, one.items_grown) == ("array", 16_000, 0)
    assert one.devices == ({"cuda:0": 16_000} if kind == "Storage" else {})
    if kind == "ndarray":
        assert say(one).item == "ndarray [30, 100] float64"


def test_a_list_of_the_same_object(tmp_path: Path) -> None:
    """Breaks when a list gets longer and its items are no new objects: `flags.append(True)`."""

    def build(heap: Heap, step: int) -> None:
        true = heap.add("bool", 28, is_tracked=False)
        heap.module("__main__", HERE, true=true, flags=heap.items("list", *[true] * step))

    one = only(growth_of(tmp_path, build))
    assert holder_of(one) == ["module train", ".flags"]
    assert (one.kind, one.counts) == ("container", ((10, 10), (20, 20), (30, 30)))


def test_two_holders_of_the_same_items(tmp_path: Path) -> None:
    """Breaks when a second table of the same items, which must be emptied too, is not told."""

    def build(heap: Heap, step: int) -> None:
        items = [heap.add("Item", 500) for _ in range(step)]
        both = {"buffer": heap.items("list", *items), "by_id": heap.items("dict", *items)}
        heap.module("__main__", HERE, **both)

    growth = growth_of(tmp_path, build)
    assert [holder_of(one)[-1] for one in growth.growing] == [".buffer", ".by_id"]
    assert [one.items_grown for one in growth.growing] == [20, 20]


def test_a_linked_list(tmp_path: Path) -> None:
    """Breaks when a chain is not told at the variable that holds its head."""

    def build(heap: Heap, step: int) -> None:
        head = heap.instance("Node", 48)
        for _ in range(step):
            head = heap.instance("Node", 48, value=heap.add("V", 100), next=head)
        heap.local(head, "head", "run")

    one = only(growth_of(tmp_path, build))
    assert (one.kind, holder_of(one)) == ("chain", ["local head in run()"])
    assert one.items_grown == 20


def test_a_graph_behind_one_variable(tmp_path: Path) -> None:
    """Breaks when `total = total + loss` is told at a node of the graph and not at `total`."""

    def build(heap: Heap, step: int) -> None:
        total = heap.add("Tensor", 80, module="torch")
        heap.described[total] = "Tensor [] float32, grad_fn AddBackward0"
        above = total
        for number in range(step):
            add, mean = 0x10_0000 + 64 * number, 0x20_0000 + 64 * number
            heap.extra_nodes.append(ExtraNode(add, "AddBackward0", 100, "", "nodes"))
            heap.extra_nodes.append(ExtraNode(mean, "MeanBackward0", 100, "", "nodes"))
            heap.extra_nodes.append(ExtraNode(mean + 32, "Storage", 4000, "", "saved"))
            role = EdgeRole.NEXT if number else EdgeRole.GRAD_FN
            heap.extra_edges.append(ExtraEdge(above, add, role))
            heap.extra_edges.append(ExtraEdge(add, mean, EdgeRole.NEXT))
            heap.extra_edges.append(ExtraEdge(mean, mean + 32, EdgeRole.SAVED, "self"))
            above = add
        heap.module("__main__", HERE, total=total)

    one = only(growth_of(tmp_path, build))
    assert (one.kind, holder_of(one)) == ("graph", ["module train", ".total"])
    assert path_of(one)[2:] == [".grad_fn", "next", "saved self"]
    assert one.parts == {"nodes": 20 * 200, "saved": 20 * 4000}
    assert one.bytes_per_item == 4200
    assert say(one).path[1].type == "Tensor [] float32, grad_fn AddBackward0"


def test_garbage_and_native(tmp_path: Path) -> None:
    """Breaks when garbage that piles up, or what native code holds, is not told as such."""

    def build(heap: Heap, step: int) -> None:
        heap.module("__main__", HERE)
        for _ in range(step):
            ring = heap.instance("Ring", 200, body=heap.add("Body", 400))
            heap.refer(ring, ring, EdgeRole.ATTRIBUTE, "me")
            heap.hold(heap.instance("Request", 300))

    growth = growth_of(tmp_path, build)
    garbage, native = growth.growing
    assert (garbage.kind, native.kind) == ("cycle", "native")
    assert holder_of(garbage) == ["(garbage in reference cycles)"]
    assert holder_of(native) == ["(held by native code)"]
    assert [say(one).path[0].kind for one in growth.growing] == ["garbage", "native"]
    assert (say(garbage).item, say(native).item) == ("Ring", "Request")
    assert (garbage.bytes_per_item, native.bytes_per_item) == (600, 300)


def test_the_inside_of_objects_written_in_c(tmp_path: Path) -> None:
    """Breaks when the lists that `StringIO`s keep where nobody sees it are told as held by native
    code, and the table of the `StringIO`s as small."""

    def build(heap: Heap, step: int) -> None:
        heap.module("_io")
        buffers = [heap.add("StringIO", 100, module="_io", is_tracked=False) for _ in range(step)]
        for _ in range(step + 3):
            heap.hold(heap.items("list", heap.add("str", 3000, is_tracked=False)))
        locks = heap.add("dict", 200)
        for buffer in buffers:
            heap.refer(locks, buffer, EdgeRole.KEY)
            heap.refer(locks, heap.add("lock", 40, module="_thread"))
        heap.module("library", LIBRARY, WRITE_LOCKS=locks)

    one = only(growth_of(tmp_path, build))
    assert holder_of(one) == ["module library", ".WRITE_LOCKS"]
    assert path_of(one)[2:] == ["key", "(held by native code)", "[x]"]
    assert one.bytes_per_item == 100 + 40 + 64 + 3000
    assert one.counts == ((10, 10), (20, 20), (30, 30))


def test_parameters_kept_by_their_gradients(tmp_path: Path) -> None:
    """Breaks when `backward(create_graph=True)` is called garbage, which a collection frees."""

    def build(heap: Heap, step: int) -> None:
        for number in range(step):
            node = 0x9000 + 64 * number
            weight, grad = (heap.add("Tensor", 80, module="torch") for _ in range(2))
            heap.refer(weight, grad, EdgeRole.GRAD)
            heap.extra_nodes.append(ExtraNode(node, "AccumulateGrad", 700, "", "nodes"))
            heap.extra_edges.append(ExtraEdge(grad, node, EdgeRole.GRAD_FN))
            heap.extra_edges.append(ExtraEdge(node, weight, EdgeRole.VARIABLE))
            heap.hold(weight)

    one = only(growth_of(tmp_path, build))
    assert (one.kind, path_of(one)[0]) == ("native", HIDDEN_CYCLE)
    assert one.items_grown == 20


def test_a_deque_with_a_limit(tmp_path: Path) -> None:
    """Breaks when what a holder says about its own size is lost."""

    def build(heap: Heap, step: int) -> None:
        window = heap.add("deque", 600, module="collections")
        for _ in range(step):
            heap.refer(window, heap.add("Item", 100))
        heap.limits[window] = 1000
        heap.module("__main__", HERE, window=window)

    assert only(growth_of(tmp_path, build)).limit == 1000


def test_threads_are_told_together(tmp_path: Path) -> None:
    """Breaks when each thread that is never joined is something else, because it has a number."""

    def build(heap: Heap, step: int) -> None:
        for number in range(step):
            thread = heap.instance("Thread", 300, module="threading")
            name = f"Thread-{number} (work)"
            heap.others.append(OtherRoot(thread, f"thread {name}", "thread", name))

    one = only(growth_of(tmp_path, build))
    assert path_of(one)[0].startswith("thread Thread-")
    assert one.counts == ((10, 10), (20, 20), (30, 30))


def test_modules_that_are_loaded_again_and_again(tmp_path: Path) -> None:
    """Breaks when each module is a root of its own, and so nothing that grows."""

    def build(heap: Heap, step: int) -> None:
        heap.module("__main__", HERE)
        for number in range(step):
            config = heap.items("list", heap.add("T", 700))
            heap.module(f"plugin_{number}", f"/tmp/plugin_{number}.py", config=config)

    one = only(growth_of(tmp_path, build))
    assert path_of(one)[:3] == ["module sys", ".modules", "[x]"]
    assert holder_of(one) == ["module sys", ".modules"]
    assert one.items_grown == 20


def test_what_a_library_holds(tmp_path: Path) -> None:
    """Breaks when a library's registry is not told by its class."""

    def build(heap: Heap, step: int) -> None:
        klass, namespace = heap.klass("State", "library")
        kept = heap.items("list", *(heap.add("Loader", 100) for _ in range(step)))
        heap.refer(namespace, kept, EdgeRole.NAME, "_shared")
        heap.module("library", LIBRARY, State=klass)

    said = say(only(growth_of(tmp_path, build)))
    assert [link.via for link in said.path] == ["class State", "._shared", "[x]"]
    held = said.path[said.grows_at]
    assert (held.kind, held.name, held.scope, held.file) == (
        "attribute",
        "_shared",
        "State",
        LIBRARY,
    )


# ── what does not grow ──


@pytest.mark.parametrize(
    "sizes", [(5, 9, 5), (9, 5, 9), (5, 5, 9), (5, 9, 9), (10, 110, 115), (0, 0, 50)]
)
def test_in_flight_or_once(tmp_path: Path, sizes: tuple[int, int, int]) -> None:
    """Breaks when something that went up and down, grew once, or comes to rest is told."""

    def build(heap: Heap, step: int) -> None:
        count = sizes[STEPS.index(step)]
        batch = heap.items("list", *(heap.add("T", 1000) for _ in range(count)))
        heap.module("__main__", HERE, batch=batch, text=heap.add("bytes", 100 + 900 * count))

    growth = growth_of(tmp_path, build)
    assert growth.growing == []
    assert growth.rest_bytes == growth.visible[-1][1] - growth.visible[0][1]


def test_growth_that_speeds_up(tmp_path: Path) -> None:
    """Breaks when growth is not told because it gets faster."""

    def build(heap: Heap, step: int) -> None:
        heap.local(heap.items("list", *(heap.add("T") for _ in range(step * step))), "rows")

    assert only(growth_of(tmp_path, build, (2, 4, 16))).items_grown == 252


def test_shares_add_up(tmp_path: Path) -> None:
    """Breaks when growth that is not told makes what is told look like more."""

    def build(heap: Heap, step: int) -> None:
        heap.local(heap.items("list", *(heap.add("T", 1000) for _ in range(step))), "rows")
        heap.local(heap.add("bytes", 50_000 if step > 10 else 100), "once")

    growth = growth_of(tmp_path, build)
    one = only(growth)
    total = growth.visible[-1][1] - growth.visible[0][1]
    assert one.bytes_grown + growth.rest_bytes == total
    assert one.share == pytest.approx(one.bytes_grown / total)
    assert growth.rest_bytes == 49_900


def test_two_snapshots_are_enough(tmp_path: Path) -> None:
    """Breaks when a run that was looked at twice has no answer; once is too few."""

    def build(heap: Heap, step: int) -> None:
        heap.local(heap.items("list", *(heap.add("T") for _ in range(step))), "rows")

    assert only(growth_of(tmp_path, build, (3, 9))).counts == ((3, 3), (9, 9))
    with pytest.raises(ValueError, match="two snapshots"):
        growth_of(tmp_path, build, (3,))


def test_new_items_come_first(tmp_path: Path) -> None:
    """Breaks when an allocation site is asked for an item that was there before."""
    made: dict[int, list[int]] = {}

    def build(heap: Heap, step: int) -> None:
        made[step] = [heap.add("T", 200) for _ in range(step)]
        heap.local(heap.items("list", *made[step]), "rows")

    one = only(growth_of(tmp_path, build))
    assert set(one.addresses[:10]) == set(made[30]) - set(made[20])
