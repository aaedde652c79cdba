"""Lines that allocate known sizes, watched; what is said of them."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import line_programs as programs
import pytest

from leakscope.line_by_line import plain_function
from leakscope.model import LineFigures, LineRow
from leakscope.observe.lines.profile import Lines


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    yield
    programs.KEPT.clear()


def watched(function: Callable[..., Any], run: Callable[[], object]) -> LineFigures:
    lines, plain = Lines(), plain_function(function)
    lines.watch(plain)
    try:
        run()
    finally:
        lines.stop(plain)
    return lines.figures(plain)


def row(figures: LineFigures, words: str) -> LineRow:
    (found,) = (one for one in figures.rows if words in one.source)
    return found


def first(figures: LineFigures) -> LineRow:
    return max(figures.rows, key=lambda one: one.kept_bytes or 0)


def test_known_sizes() -> None:
    figures = watched(programs.allocates, lambda: programs.allocates(200_000))
    assert figures.calls == 1
    assert row(figures, "kept = ").kept_bytes == pytest.approx(3_000_000, rel=0.02)
    # 8 bytes in the list and an int of 32 bytes each, but for the small ones that always exist.
    assert row(figures, "numbers = ").kept_bytes == pytest.approx(200_000 * 40, rel=0.02)
    scratch = row(figures, "scratch = ")
    assert scratch.kept_bytes == pytest.approx(0, abs=4096), "it is gone when the call is over"
    assert scratch.given_back_bytes == pytest.approx(5_000_000, rel=0.02)
    assert scratch.peak_bytes == pytest.approx(5_000_000, rel=0.05)
    assert all(not one.is_estimate for one in figures.rows)


def test_numpy_arrays() -> None:
    numpy = pytest.importorskip("numpy")

    def arrays() -> Any:
        kept = numpy.ones(1_000_000)
        numpy.ones(3_000_000)
        return kept

    figures = watched(arrays, lambda: programs.KEPT.append(arrays()))
    assert row(figures, "kept = ").kept_bytes == pytest.approx(8_000_000, rel=0.02)
    dropped = row(figures, "numpy.ones(3")
    assert dropped.kept_bytes == pytest.approx(0, abs=65_536)


@pytest.mark.torch
def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")

    def tensors() -> Any:
        kept = torch.ones(1_000_000)
        scratch = torch.ones(500_000)
        return kept + scratch.sum()

    tensors()  # what torch builds for itself at the first call is not asked about here
    figures = watched(tensors, lambda: programs.KEPT.append(tensors()))
    assert row(figures, "scratch = ").given_back_bytes == pytest.approx(2_000_000, rel=0.05)
    assert row(figures, "return kept").kept_bytes == pytest.approx(4_000_000, rel=0.05)
    assert any(gap.what == "device memory" for gap in figures.gaps)


def test_the_line_that_keeps_comes_first() -> None:
    def run() -> None:
        for index in range(3_000):
            programs.handles(index)

    figures = watched(programs.handles, run)
    assert figures.calls == 3_000
    assert {one.calls for one in figures.rows} == {3_000}
    keeps = row(figures, "kept = ")
    assert first(figures) is keeps, "not the larger one, which is given back"
    assert keeps.kept_bytes == pytest.approx(3_000 * 10_048, rel=0.05)
    assert keeps.is_estimate
    assert "KEPT.append( kept, )" in row(figures, "KEPT.append").source


def test_a_loop_in_one_call() -> None:
    figures = watched(programs.loops, lambda: programs.loops(20_000))
    keeps = row(figures, "out.append")
    assert keeps.calls == 20_000
    assert first(figures) is keeps
    assert keeps.kept_bytes == pytest.approx(20_000 * 2_048, rel=0.05)
    assert row(figures, "for _ in").calls == 20_001


def test_what_a_list_gives_back_is_what_other_lines_put_into_it() -> None:
    def run() -> None:
        for _ in range(100):
            programs.fills_and_drops(50)

    figures = watched(programs.fills_and_drops, run)
    fills = row(figures, "item = ")
    whole = 100 * 50 * 3_000
    assert fills.given_back_bytes == pytest.approx(whole, rel=0.2)
    for one in figures.rows:
        assert one.kept_bytes == pytest.approx(0, abs=0.05 * whole), one.source


def test_the_innermost_line_has_the_bytes() -> None:
    lines = Lines()
    for function in (programs.handles, programs.calls_handles):
        lines.watch(plain_function(function))
    try:
        programs.calls_handles(40)
    finally:
        for function in (programs.handles, programs.calls_handles):
            lines.stop(plain_function(function))
    outer = lines.figures(plain_function(programs.calls_handles))
    call = row(outer, "handles(index)")
    assert call.calls == 40
    assert call.kept_bytes == pytest.approx(0, abs=40_000), "that is the callee's"
    assert call.with_calls_bytes == pytest.approx(40 * 10_048, rel=0.1)
    assert row(outer, "own = ").kept_bytes == pytest.approx(200_000, rel=0.05)


def test_a_generator_is_not_charged_for_its_consumer() -> None:
    def consume() -> None:
        for item in programs.generates(300):
            programs.KEPT.append((item, bytes(100_000)))

    figures = watched(programs.generates, consume)
    made = row(figures, "item = ")
    assert made.calls == 300
    assert made.kept_bytes == pytest.approx(300 * 20_048, rel=0.15), "estimated, of short turns"
    assert row(figures, "yield item").kept_bytes == pytest.approx(0, abs=100_000)


def test_coroutines_that_take_turns() -> None:
    async def both() -> None:
        async def allocates() -> None:
            for _ in range(50):
                programs.KEPT.append(bytes(100_000))
                await asyncio.sleep(0)

        await asyncio.gather(programs.awaits(50), allocates())

    figures = watched(programs.awaits, lambda: asyncio.run(both()))
    assert inspect.iscoroutinefunction(programs.awaits)
    assert row(figures, "own = ").kept_bytes == pytest.approx(600_000, rel=0.05)
    waits = row(figures, "await asyncio.sleep")
    assert waits.calls == 50
    assert waits.kept_bytes == pytest.approx(0, abs=100_000), "5 MB is the other task's"


def test_recursion() -> None:
    figures = watched(programs.recurses, lambda: programs.recurses(10))
    own = row(figures, "own = ")
    assert (figures.calls, own.calls) == (11, 11)
    assert own.kept_bytes == pytest.approx(0, abs=20_000)
    assert own.given_back_bytes == pytest.approx(11 * 400_000, rel=0.05)


def test_exceptions_leave_as_they_would() -> None:
    def run() -> None:
        for _ in range(5):
            with pytest.raises(ValueError, match="on purpose") as caught:
                programs.fails()
            trace = traceback.extract_tb(caught.value.__traceback__)
            assert trace[-1].name == "fails"
            assert trace[-1].line == 'raise ValueError("on purpose")'

    figures = watched(programs.fails, run)
    assert row(figures, "KEPT.append").calls == 5
    assert row(figures, "KEPT.append").kept_bytes == pytest.approx(5 * 700_000, rel=0.05)


def test_threads_have_calls_of_their_own() -> None:
    def run() -> None:
        threads = [threading.Thread(target=programs.handles, args=(one,)) for one in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    figures = watched(programs.handles, run)
    assert figures.calls == 8
    assert row(figures, "kept = ").calls == 8


def test_methods_are_watched_where_they_are_defined() -> None:
    owner = programs.Owner()
    figures = watched(owner.fills, owner.fills)
    assert row(figures, "self.data").kept_bytes == pytest.approx(900_000, rel=0.05)
    figures = watched(programs.Owner.stands_alone, programs.Owner.stands_alone)
    assert row(figures, "KEPT.append").kept_bytes == pytest.approx(800_000, rel=0.05)


def test_functions_of_the_same_code_are_not_watched_with_it() -> None:
    def make() -> FunctionType:
        def inner() -> None:
            programs.KEPT.append(1)

        return inner  # type: ignore[return-value]

    one, other = make(), make()
    figures = watched(one, other)
    assert figures.calls == 0


def test_a_trace_function_stays_and_sees_the_lines() -> None:
    seen: list[str] = []

    def trace(frame: Any, event: str, argument: object) -> Any:
        if frame.f_code.co_name == "handles":
            seen.append(event)
        return trace

    def run() -> None:
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            programs.handles(1)
            assert sys.gettrace() is trace
        finally:
            sys.settrace(before)

    figures = watched(programs.handles, run)
    assert figures.calls == 1
    assert seen.count("line") >= 4
    assert seen[-1] == "return"


def test_nothing_is_left_behind() -> None:
    code = programs.handles.__code__
    result = programs.handles(7)
    watched(programs.handles, lambda: programs.handles(7))
    assert programs.handles(7) == result
    assert programs.handles.__code__.co_code == code.co_code


def test_locals_that_somebody_asks_for_stay() -> None:
    def tells() -> dict[str, object]:
        first_one = bytes(100_000)
        second = first_one
        return locals()

    seen: list[dict[str, object]] = []
    watched(tells, lambda: seen.append(tells()))
    assert set(seen[0]) == {"first_one", "second"}
    assert all(seen[0].values())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in 3.12")
def test_no_place_left_in_monitoring() -> None:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
    free = [one for one in range(6) if monitoring.get_tool(one) is None]
    for one in free:
        monitoring.use_tool_id(one, "somebody")
    try:
        figures = watched(programs.handles, lambda: programs.handles(1))
    finally:
        for one in free:
            monitoring.free_tool_id(one)
    assert figures.calls == 0
    assert any("all six places" in gap.why for gap in figures.gaps)
