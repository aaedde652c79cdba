"""Locals of frames are read, and nobody can tell.

What is looked at happens in functions without `assert`: pytest rewrites the others to call
`locals()`, and such functions are not read.
"""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from leakscope.observe.frames import Local, describe_local, locals_of, running_frames

KEEPS_SNAPSHOT = sys.version_info < (3, 13)


class Thing:
    pass


def find_in_frames(wanted: set[int]) -> dict[int, Local]:
    """As the roots of a snapshot are found: every variable of every running function."""
    found = {}
    for running in running_frames()[:-1]:  # the last is this function, and would hold itself
        with locals_of(running.frame) as names:
            for name, value in names.items():
                if id(value) in wanted and name.isidentifier():
                    found[id(value)] = describe_local(running, name)
    return found


def names_in(frame: FrameType, wanted: set[int]) -> list[tuple[int, str]]:
    with locals_of(frame) as names:
        return [(id(value), name) for name, value in names.items() if id(value) in wanted]


@pytest.fixture(autouse=True)
def _nobody_traces() -> None:
    if sys.gettrace() is not None or sys.getprofile() is not None:
        pytest.skip("somebody traces the tests themselves")


def test_names_a_variable_and_its_place() -> None:
    """Breaks when a running function's variable is not found, or its place is told wrongly."""
    local = _names_its_own()
    assert (local.name, local.function) == ("batch", "_names_its_own")
    assert local.file == __file__
    assert local.line == _names_its_own.__code__.co_firstlineno + 2
    assert (local.thread, local.is_argument, local.is_free) == ("MainThread", False, False)
    assert local.depth > 0


def _names_its_own() -> Local:
    batch = Thing()
    return find_in_frames({id(batch)})[id(batch)]


def test_sees_free_variables_and_cells() -> None:
    """Breaks when what a closure uses is not found."""
    own = Thing()

    def inner() -> Any:
        return own, find_in_frames({id(own)})[id(own)]

    assert inner()[1].function.startswith("test_sees_free")  # the owner still runs
    found = _returned_closure()()
    assert (found.name, found.is_free) == ("thing", True)


def _returned_closure() -> Callable[[], Any]:
    thing = Thing()
    return lambda: find_in_frames({id(thing)})[id(thing)]


def test_sees_other_threads() -> None:
    """Breaks when only the asking thread's stack is looked through."""
    thing = Thing()
    is_ready, is_over = threading.Event(), threading.Event()

    def feed(items: list[Thing]) -> None:
        mine = items.pop()
        is_ready.set()
        is_over.wait()
        del mine

    thread = threading.Thread(target=feed, args=([thing],), name="feeder")
    thread.start()
    is_ready.wait()
    identity = id(thing)
    del thing
    local = find_in_frames({identity})[identity]
    is_over.set()
    thread.join()
    assert (local.thread, local.name) == ("feeder", "mine")


def test_leaves_our_own_frames_out() -> None:
    """Breaks when a function of leakscope shows up as a holder."""
    assert all("/leakscope/" not in running.frame.f_code.co_filename for running in _all_running())


def _all_running() -> Any:
    return running_frames()


def test_keeps_nothing_alive() -> None:
    """Breaks when a variable lives on after `del` because we looked at it."""
    found, names, after_del = _looks_and_deletes()
    assert (len(found), names) == (1, ["thing"])
    assert after_del is None


def _looks_and_deletes() -> tuple[Any, list[str], Thing | None]:
    thing = Thing()
    dies = weakref.ref(thing)
    found = find_in_frames({id(thing)})
    names = [name for _, name in names_in(sys._getframe(), {id(thing)})]
    del thing
    return found, names, dies()


def test_keeps_nothing_alive_in_a_generator() -> None:
    """Breaks when a suspended generator's variable lives on after we looked at it."""

    def stream() -> Iterator[Any]:
        thing = Thing()
        yield weakref.ref(thing)
        del thing
        yield None

    generator: Any = stream()
    dies = next(generator)
    assert names_in(generator.gi_frame, {id(dies())})[0][1] == "thing"
    next(generator)
    assert dies() is None


def test_leaves_no_cycle_behind() -> None:
    """Breaks when our own frame, and with it the search, is left for the collector."""
    gc.collect()
    gc.disable()
    try:
        thing = Thing()
        find_in_frames({id(thing)})
        frames = [one for one in gc.get_objects() if type(one) is FrameType]
        files = [frame.f_code.co_filename for frame in frames]
        del frames
    finally:
        gc.enable()
    assert not [file for file in files if "/leakscope/observe/" in file]


def test_leaves_locals_of_the_program_alone() -> None:
    """Breaks when the dict that `locals()` gave to the program changes."""
    first = 1
    held = locals()
    before = dict(held)
    second = Thing()
    find_in_frames({id(second)})
    assert dict(held) == before
    assert (first, held["first"]) == (1, 1)


def test_leaves_a_snapshot_somebody_holds() -> None:
    """Breaks when a dict that another function took of a frame is emptied."""
    kept, held = _gives_its_locals_away()
    assert held["kept"] is kept


def _gives_its_locals_away() -> tuple[Thing, Any]:
    kept = Thing()
    held = _take()
    find_in_frames({id(kept)})
    return kept, held


def _take() -> Any:
    return sys._getframe(1).f_locals


@pytest.mark.parametrize(
    ("start", "stop"),
    [
        (sys.settrace, sys.settrace),
        (sys.setprofile, sys.setprofile),
        (threading.settrace, threading.settrace),
    ],
    ids=["trace", "profile", "threads"],
)
def test_traced_program_keeps_its_variables(start: Any, stop: Any) -> None:
    """Breaks when reading under a debugger unbinds the variables of the program."""
    seen: list[Any] = []

    def look(frame: FrameType, event: str, argument: Any) -> Any:
        seen.append(find_in_frames({id(thing)}))
        return look

    def traced() -> tuple[int, Thing]:
        number = 1
        inner = thing
        number += 1
        return number, inner

    thing = Thing()
    start(look)
    try:
        seen.append(_finds_its_own())
        answer = traced()
    finally:
        stop(None)
    assert answer == (2, thing)
    assert bool(seen[0]) is not KEEPS_SNAPSHOT
    assert any(seen) is not KEEPS_SNAPSHOT


def _finds_its_own() -> bool:
    thing = Thing()
    return bool(find_in_frames({id(thing)}))


def test_class_body_and_odd_namespaces() -> None:
    """Breaks when a class body is not read, or a mapping of the program is asked."""
    found: list[Any] = []

    class Body:
        thing = Thing()
        found.append(find_in_frames({id(thing)})[id(thing)])

    assert (found[0].name, found[0].function.split(".")[-1]) == ("thing", "Body")

    class Asked(dict[str, Any]):
        def items(self) -> Any:
            raise AssertionError("asked")

    space = Asked()
    exec("value = make(); look({id(value)})", {"make": Thing, "look": find_in_frames}, space)
    assert type(space["value"]) is Thing


def test_block_gives_nothing_afterwards() -> None:
    """Breaks when the snapshot is still filled after the block."""
    with locals_of(_frame_of_a_finished_function()) as names:
        assert names["inner"] == 5
        kept = names
    assert not kept or not KEEPS_SNAPSHOT


def _frame_of_a_finished_function() -> FrameType:
    inner = 5
    frame = sys._getframe()
    inner += 0
    return frame
