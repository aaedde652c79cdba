"""LS0xx: what looks like a leak and is none. Each says its figures, and nothing without them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from leakscope.analysis import analyse
from leakscope.model import SEVERAL_STEP, Outcome, Report
from make import KIB, MIB, Maker, flat, line, recording, rising_until, step_up, wobble

Shape = Callable[[int], float]


def said(maker: Maker) -> dict[str, str]:
    """What harmless rules said, by number, in a run that must not be called a leak."""
    report = analyse(maker.done())
    assert report.verdict is not Outcome.LEAK
    return by_rule(report)


def by_rule(report: Report) -> dict[str, str]:
    return {one.rule: one.says for one in report.harmless}


def settling(size: float, pace: float = 40.0, base: float = 100 * MIB) -> Shape:
    return lambda step: base + size * (1 - math.exp(-step / pace))


def teeth(size: float, every: int, base: float = 100 * MIB) -> Shape:
    return lambda step: base + size * (step % every) / every


def records(*at: int, each: float, base: float = 300 * MIB) -> Shape:
    return lambda step: base + each * sum(step >= one for one in at)


def test_a_plain_run_has_nothing_to_tell(tmp_path: Path) -> None:
    made = recording(tmp_path).steps(300, in_use=flat(), held=flat(2 * MIB), rss=flat(300 * MIB))
    assert said(made) == {}


def test_warm_up(tmp_path: Path) -> None:
    made = recording(tmp_path).steps(
        400, in_use=wobble(settling(8 * MIB), 2 * KIB), rss=flat(300 * MIB)
    )
    found = said(made)
    assert set(found) == {"LS001"}
    assert "7.1 MiB until about step 131" in found["LS001"]


@pytest.mark.parametrize(("rows_between", "is_told"), [(1000, True), (3, False)])
def test_what_goes_up_and_down_by_more_has_not_come_to_rest(
    tmp_path: Path, rows_between: int, is_told: bool
) -> None:
    """Breaks when a rise that every third row is below again is told as over."""

    def shape(step: int) -> float:
        dip = 12 * MIB if step > 60 and step % rows_between == 0 else 0.0
        return 100 * MIB + 8 * MIB * (step >= 60) - dip

    made = recording(tmp_path).steps(400, in_use=shape, rss=flat(300 * MIB))
    assert ("LS001" in said(made)) is is_told


def test_a_warm_up_of_little_does_not_answer_why_much_came(tmp_path: Path) -> None:
    """Breaks when 1 MiB of buffers is told as the reason of 45 MiB that threads hold free."""
    made = recording(tmp_path).steps(
        400,
        in_use=wobble(settling(1 * MIB), 2 * KIB),
        held=settling(45 * MIB, base=4 * MIB),
        rss=settling(46 * MIB, base=300 * MIB),
    )
    assert "LS001" not in said(made)


def test_growth_is_no_warm_up(tmp_path: Path) -> None:
    made = recording(tmp_path).steps(400, in_use=line(20 * KIB), rss=line(20 * KIB, 300 * MIB))
    assert by_rule(analyse(made.done())) == {}


def test_optimizer_state(tmp_path: Path) -> None:
    made = recording(tmp_path).steps(200, first=0, in_use=step_up(1, 40 * MIB), rss=flat(300 * MIB))
    made.roles(4, parameter=20 * MIB, gradient=20 * MIB, optimizer_state=40 * MIB)
    found = said(made)
    assert set(found) == {"LS002"}
    assert "40 MiB" in found["LS002"]
    assert "2.0 times the parameters" in found["LS002"]


def test_an_optimizer_without_state(tmp_path: Path) -> None:
    made = recording(tmp_path).steps(200, first=0, in_use=step_up(1, 20 * MIB), rss=flat(300 * MIB))
    made.roles(4, parameter=20 * MIB, gradient=20 * MIB, optimizer_state=0)
    assert said(made) == {}


@pytest.mark.parametrize(("size", "is_told"), [(60 * MIB, True), (0, False)])
def test_checkpoints(tmp_path: Path, size: int, is_told: bool) -> None:
    made = recording(tmp_path).steps(200, in_use=flat(), rss=flat(300 * MIB))
    for step in range(20, 201, 20):
        made.mark("save", step + 0.4, in_use_bytes=100 * MIB + size)
    found = said(made)
    assert set(found) == ({"LS003"} if is_told else set())
    if is_told:
        assert "10 checkpoints saved, about every 20 steps" in found["LS003"]
        assert "60 MiB" in found["LS003"]


def test_teeth_of_the_collector(tmp_path: Path) -> None:
    made = recording(tmp_path).steps(
        600, in_use=teeth(12 * MIB, 60), rss=flat(300 * MIB), collections_every=60
    )
    found = said(made)
    assert set(found) == {"LS004"}
    assert "about every 60 steps" in found["LS004"]
    assert "freed 12.0 MiB each" in found["LS004"] or "freed 11.8 MiB each" in found["LS004"]


def test_teeth_that_no_collection_made(tmp_path: Path) -> None:
    made = recording(tmp_path).steps(
        600, in_use=teeth(3 * MIB, 60), rss=flat(300 * MIB), collections_every=47
    )
    assert said(made) == {}


def test_memory_that_the_allocator_holds(tmp_path: Path) -> None:
    made = recording(tmp_path).steps(200, in_use=flat(), held=flat(80 * MIB), rss=flat(300 * MIB))
    found = said(made)
    assert set(found) == {"LS005"}
    assert "80 MiB" in found["LS005"]


def test_held_memory_that_grows_is_not_called_harmless(tmp_path: Path) -> None:
    made = recording(tmp_path).steps(
        300, in_use=flat(), held=line(200 * KIB, 20 * MIB), rss=line(200 * KIB, 300 * MIB)
    )
    report = analyse(made.done())
    assert report.verdict is Outcome.GROWING
    assert by_rule(report) == {}


def test_pages_of_files(tmp_path: Path) -> None:
    made = recording(tmp_path).steps(300, in_use=flat(), rss=line(300 * KIB, 300 * MIB))
    for step in range(1, 300, 20):
        made.sample(step, file_bytes=40 * MIB + 300 * KIB * step)
    found = said(made)
    assert set(found) == {"LS006"}
    assert "MiB of mapped files" in found["LS006"]


def test_code_that_is_no_longer_shared_was_resident_before(tmp_path: Path) -> None:
    made = recording(tmp_path).steps(300, in_use=flat(), rss=flat(300 * MIB))
    for step in range(1, 300, 20):
        made.sample(step, file_bytes=(20 if step < 200 else 70) * MIB)
    assert said(made) == {}


def test_a_buffer_that_is_full(tmp_path: Path) -> None:
    made = recording(tmp_path).steps(400, in_use=rising_until(150, 40 * KIB), rss=flat(300 * MIB))
    made.looked(20, 60, line(40 * KIB))
    made.holds("memory", 1.0, 40 * KIB, bound="it is a deque with maxlen=150")
    found = said(made)
    assert set(found) == {"LS007"}
    assert "`memory`" in found["LS007"]
    assert "maxlen=150" in found["LS007"]


def test_a_buffer_that_still_fills(tmp_path: Path) -> None:
    made = recording(tmp_path).steps(200, in_use=line(30 * KIB), blocks=flat(1000))
    made.looked(20, 60, line(30 * KIB))
    made.holds("memory", 1.0, 29 * KIB, bound="it is a deque with maxlen=1,000")
    found = said(made)
    assert set(found) == {"LS007"}
    assert "maxlen=1,000" in found["LS007"]


def test_a_leak_is_never_called_a_cache(tmp_path: Path) -> None:
    made = recording(tmp_path).steps(200, in_use=line(30 * KIB), blocks=flat(1000))
    made.looked(20, 60, line(30 * KIB)).holds("kept", 1.0, 29 * KIB)
    report = analyse(made.done())
    assert report.verdict is Outcome.LEAK
    assert by_rule(report) == {}


def test_the_longest_batch_so_far(tmp_path: Path) -> None:
    resident = records(9, 32, 90, 300, each=12 * MIB)
    made = recording(tmp_path).steps(500, in_use=flat(), rss=wobble(resident, 20 * KIB))
    found = said(made)
    assert set(found) == {"LS008"}
    assert "rose 3 times, by 47.0 MiB" in found["LS008"]


def test_by_the_clock_nobody_knows_what_a_step_needs(tmp_path: Path) -> None:
    resident = wobble(records(9, 32, 90, 300, each=12 * MIB), 20 * KIB)
    made = recording(tmp_path).steps(500, in_use=flat(), rss=resident, source="tick")
    assert "LS008" not in said(made)


def test_steps_of_several_threads_have_arenas_of_their_own(tmp_path: Path) -> None:
    """Breaks when a service with two threads (zoo/cpu/threaded-server) has a longest batch."""
    resident = wobble(records(9, 32, 90, 300, each=12 * MIB), 20 * KIB)
    made = recording(tmp_path).steps(500, in_use=flat(), rss=resident).mark(SEVERAL_STEP, 4)
    assert "LS008" not in said(made)


def test_live_memory_that_rises_with_it_is_kept(tmp_path: Path) -> None:
    made = recording(tmp_path).steps(
        500,
        in_use=records(9, 32, 90, 300, each=4 * MIB, base=100 * MIB),
        rss=records(9, 32, 90, 300, each=12 * MIB),
    )
    assert "LS008" not in said(made)


@pytest.mark.parametrize(("threads", "is_told"), [(12, True), (1, False)])
def test_arenas_of_threads(tmp_path: Path, threads: int, is_told: bool) -> None:
    held = rising_until(120, 400 * KIB, 4 * MIB)
    made = recording(tmp_path).steps(300, in_use=flat(), held=held, rss=flat(300 * MIB))
    for step in range(1, 300, 10):
        made.sample(step, threads_count=3 + min(step * threads // 120, threads))
    found = said(made)
    assert ("LS009" in found) is is_told
    if is_told:
        assert "from 3 to 15" in found["LS009"]


@pytest.mark.parametrize(("threads_rise", "is_told"), [(40, True), (80, False)])
def test_threads_that_were_counted_late(tmp_path: Path, threads_rise: int, is_told: bool) -> None:
    """Breaks when the first count, at step 40, hides that threads were becoming more before it; or
    when threads that came after memory had risen are the reason of that."""
    held = rising_until(120, 400 * KIB, 4 * MIB)
    made = recording(tmp_path).steps(300, in_use=flat(), held=held, rss=flat(300 * MIB))
    for step in range(40, 300, 10):
        made.sample(step, threads_count=7 + max(step - threads_rise, 0) // 10)
    assert ("LS009" in said(made)) is is_told


@pytest.mark.parametrize(("at", "is_told"), [(2, False), (30, True)])
def test_what_the_first_steps_load_is_no_warm_up(tmp_path: Path, at: int, is_told: bool) -> None:
    """Breaks when the place of a rise is taken from rows that were put together: fifteen of them
    had the first step's at step 27 of 500."""
    loads = records(at, each=150 * MIB, base=140 * MIB)
    made = recording(tmp_path, step_ns=500_000)
    for row in _ROWS_OF_A_SHORT_RUN:
        made.steps(row, first=row, in_use=loads, rss=flat(500 * MIB))
    assert ("LS001" in said(made)) == is_told


_ROWS_OF_A_SHORT_RUN = (
    *(1, 2, 3, 6, 10, 15, 21, 27, 33, 41, 49, 59, 70, 83, 98, 107, 126, 143, 164, 189, 216),
    *(254, 296, 336, 392, 461, 500),
)
