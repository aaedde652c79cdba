"""Recordings in, reports out: what is said of runs whose truth is known."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from leakscope.analysis import analyse
from leakscope.judge.series import even_out
from leakscope.model import IMPORTING, BlackBox, Outcome, Report, Shape, Verdict
from make import (
    GIB,
    KIB,
    MIB,
    Maker,
    flat,
    line,
    recording,
    rising_until,
    step_up,
    wobble,
)


def verdict_of(report: Report, metric: str, process: str = "main") -> Verdict:
    for verdict in report.verdicts:
        if verdict.series.metric == metric and verdict.series.process == process:
            return verdict
    raise AssertionError(f"no verdict on {metric} of {process}")


def test_a_flat_run_is_steady_and_says_what_it_could_have_seen(tmp_path: pathlib.Path) -> None:
    made = recording(tmp_path).steps(200, in_use=wobble(flat(), 2 * KIB), rss=flat())
    report = analyse(made.ended(200).done())
    assert report.verdict is Outcome.STEADY
    live = verdict_of(report, "heap.in_use_bytes")
    assert 0 < live.smallest_visible_bytes_per_step < 5 * KIB
    assert report.forecast is None
    assert report.unexplained == {}
    assert report.steps == 200
    assert report.steps_from == "optimizer"


def test_a_line_grows_at_its_rate_and_the_limit_is_foretold(tmp_path: pathlib.Path) -> None:
    made = recording(tmp_path).steps(200, in_use=line(64 * KIB), rss=line(64 * KIB, 300 * MIB))
    made.machine(range(0, 200, 10), cgroup_use_bytes=line(64 * KIB, 4 * GIB))
    report = analyse(made.ended(200).done())
    assert report.verdict is Outcome.GROWING
    live = verdict_of(report, "heap.in_use_bytes")
    assert live.shape is Shape.LINEAR
    assert live.bytes_per_step.low <= 64 * KIB <= live.bytes_per_step.high
    assert report.forecast is not None
    # 12 GiB are left, at 64 KiB a step.
    assert report.forecast.steps_left.value == pytest.approx(12 * GIB / (64 * KIB), rel=0.05)
    assert report.forecast.at_step == pytest.approx(200 + 12 * GIB / (64 * KIB), rel=0.05)
    assert report.unexplained["heap.in_use_bytes main"] == live.bytes_per_step.value


def test_one_step_up_is_not_growth(tmp_path: pathlib.Path) -> None:
    made = recording(tmp_path).steps(200, in_use=step_up(80, 50 * MIB), rss=flat(300 * MIB))
    report = analyse(made.ended(200).done())
    assert report.verdict is Outcome.STEADY
    assert verdict_of(report, "heap.in_use_bytes").shape is Shape.STEP


def test_a_cache_that_is_full_is_steady(tmp_path: pathlib.Path) -> None:
    made = recording(tmp_path).steps(300, in_use=rising_until(120, 100 * KIB), rss=flat(300 * MIB))
    report = analyse(made.ended(300).done())
    assert report.verdict is Outcome.STEADY


def test_resident_growth_without_live_growth_is_the_allocators(tmp_path: pathlib.Path) -> None:
    made = recording(tmp_path).steps(
        300,
        in_use=flat(),
        held=line(200 * KIB, 10 * MIB),
        rss=line(200 * KIB, 300 * MIB),
        blocks=flat(500_000),
    )
    report = analyse(made.ended(300).done())
    assert report.verdict is Outcome.GROWING
    assert verdict_of(report, "process.rss_bytes").shape is Shape.FRAGMENTATION
    assert "allocator" in report.because


def test_live_and_held_growth_are_told_apart(tmp_path: pathlib.Path) -> None:
    made = recording(tmp_path).steps(
        300, in_use=line(16 * KIB), held=line(160 * KIB), rss=line(177 * KIB, 300 * MIB)
    )
    report = analyse(made.ended(300).done())
    note = next(note for note in report.notes if note.startswith("Live memory grows"))
    assert "16" in note
    assert "177 KiB" in note


@pytest.mark.parametrize(
    ("name", "returned", "says"),
    [
        ("collection", 19 * MIB, "reference cycles that the collector had not come to"),
        ("thaw", 19 * MIB, "gc.freeze() keeps from the collector"),
        ("collection", 2 * MIB, ""),
    ],
)
def test_the_remedy_that_gives_back_what_grew_names_the_cause(
    tmp_path: pathlib.Path, name: str, returned: int, says: str
) -> None:
    made = recording(tmp_path).steps(300, in_use=line(64 * KIB), rss=line(64 * KIB, 300 * MIB))
    made.remedy(name, 300, in_use_bytes=returned)
    report = analyse(made.ended(300).done())
    told = [note for note in report.notes if note.startswith("At the end of the run")]
    assert [says in note for note in told] == ([True] if says else [])


def test_memory_that_the_allocator_held_is_told_at_the_end(tmp_path: pathlib.Path) -> None:
    made = recording(tmp_path).steps(300, in_use=flat(), rss=flat(300 * MIB))
    made.remedy("trim", 300, rss_bytes=80 * MIB)
    report = analyse(made.ended(300).done())
    assert any("malloc_trim gave 80 MiB back" in note for note in report.notes)


def test_growth_below_what_matters_is_steady(tmp_path: pathlib.Path) -> None:
    """A list of losses kept as floats: 32 bytes a step."""
    made = recording(tmp_path).steps(400, in_use=line(32), rss=flat(300 * MIB))
    report = analyse(made.ended(400).done())
    assert report.verdict is Outcome.STEADY


def test_blocks_that_rise_without_a_collection_are_not_called_growth(
    tmp_path: pathlib.Path,
) -> None:
    """PyTorch drops a small cycle a step; only a full collection tells it from what is kept."""
    made = recording(tmp_path, step_ns=1_000_000)
    made.steps(400, in_use=flat(), blocks=line(10, 500_000), rss=flat(300 * MIB))
    assert analyse(made.ended(400).done()).verdict is Outcome.STEADY


def test_blocks_that_survive_collections_are_growth(tmp_path: pathlib.Path) -> None:
    made = recording(tmp_path, step_ns=1_000_000)
    made.steps(
        400, in_use=flat(), blocks=line(10, 500_000), rss=flat(300 * MIB), collections_every=20
    )
    report = analyse(made.ended(400).done())
    assert report.verdict is Outcome.GROWING
    assert "blocks" in report.because


def test_growth_of_workers_adds_up_on_the_steps_of_the_run(tmp_path: pathlib.Path) -> None:
    made = recording(tmp_path).steps(200, in_use=flat(), rss=flat(300 * MIB))
    for number in (0, 1):
        pid = 10 + number
        made.process(pid, kind="worker", parent=1, name=f"worker {number}")
        made.steps(200, pid=pid, source="fetch", every=2, in_use=line(32 * KIB), rss=flat())
    report = analyse(made.ended(200).done())
    assert report.verdict is Outcome.GROWING
    tree = verdict_of(report, "tree.growth_bytes", "all")
    assert tree.bytes_per_step.value == pytest.approx(64 * KIB, rel=0.1)
    assert "worker 0" in tree.because
    assert "worker 1" in tree.because


def test_private_pages_of_a_worker_that_grow_alone_are_copies(tmp_path: pathlib.Path) -> None:
    made = recording(tmp_path).steps(200, source="dataloader", in_use=flat(), rss=flat())
    made.process(10, kind="worker", parent=1, name="worker 0")
    made.steps(200, pid=10, source="fetch", in_use=flat(), rss=flat())
    for step in range(1, 200, 9):
        made.sample(step, pid=10, uss_bytes=50 * MIB + 300 * KIB * step)
    report = analyse(made.ended(200).done())
    assert report.verdict is Outcome.GROWING
    assert verdict_of(report, "process.uss_bytes", "worker 0").shape is Shape.COPY_ON_WRITE


def test_pages_that_the_parent_gives_up_are_no_copies(tmp_path: pathlib.Path) -> None:
    """Breaks when 70 MiB that become a worker's own at once, beside 1.2 MiB of growth, are called
    pages that it copies (zoo/cpu/batches-from-workers: 63 % of its growth was nobody's)."""
    made = recording(tmp_path).steps(200, source="dataloader", in_use=flat(), rss=flat())
    made.process(10, kind="worker", parent=1, name="worker 0")
    made.steps(200, pid=10, source="fetch", in_use=flat(), rss=flat())
    for step in range(1, 200, 9):
        made.sample(step, pid=10, uss_bytes=10 * MIB + 7 * KIB * step + 70 * MIB * (step > 60))
    report = analyse(made.ended(200).done())
    assert report.verdict is Outcome.STEADY


def test_without_steps_the_clock_counts_from_the_end_of_the_imports(
    tmp_path: pathlib.Path,
) -> None:
    made = Maker(tmp_path).process()
    made.resident([i / 2 for i in range(400)], rising_until(100, 1 * MIB))
    made.mark("imported", 100).mark("exiting", 180)
    report = analyse(made.ended(200).done())
    assert report.steps_from == "time"
    assert report.verdict is Outcome.STEADY, "the growth was the imports"
    assert any("tick" in note for note in report.notes)


@pytest.mark.parametrize(
    ("height", "outcome"), [(12 * KIB, Outcome.STEADY), (3 * MIB, Outcome.UNKNOWN)]
)
def test_two_teeth_leave_no_room_for_a_leak_or_do(
    tmp_path: pathlib.Path, height: int, outcome: Outcome
) -> None:
    """What stays of them cannot be told; but of 12 KiB in 240 steps nothing can that matters."""

    def teeth(step: int) -> float:
        return 100 * MIB + height * (step % 100) / 100

    made = recording(tmp_path).steps(240, in_use=teeth, blocks=flat(1000), rss=flat())
    assert analyse(made.ended(240).done()).verdict is outcome


@pytest.mark.parametrize(
    ("ticks", "shape", "outcome"),
    [
        (15, flat(), Outcome.UNKNOWN),
        (15, line(1 * MIB), Outcome.GROWING),
        (60, flat(), Outcome.STEADY),
    ],
)
def test_a_program_that_was_over_at_once_is_not_called_steady(
    tmp_path: pathlib.Path, ticks: int, shape: Callable[[int], float], outcome: Outcome
) -> None:
    made = Maker(tmp_path).process()
    made.steps(ticks, source="tick", rss=shape)
    report = analyse(made.ended(ticks).done())
    assert report.verdict is outcome
    assert (report.forecast is not None) is (outcome is Outcome.GROWING)


@pytest.mark.parametrize(
    ("stretches", "outcome"),
    [
        ((), Outcome.GROWING),
        (((40, 140),), Outcome.STEADY),
        (((40, 90), (60, 140)), Outcome.STEADY),
    ],
)
def test_the_clock_stands_still_while_modules_are_loaded(
    tmp_path: pathlib.Path, stretches: tuple[tuple[int, int], ...], outcome: Outcome
) -> None:
    """Breaks when a second of imports, in the middle of a program without steps, is its growth."""

    def loading(tick: int) -> float:
        return 100 * MIB + 400 * KIB * max(tick - 40, 0)

    made = Maker(tmp_path).process()
    made.steps(140, source="tick", in_use=loading, blocks=flat(1000), rss=loading)
    for began, ended in stretches:
        made.mark(IMPORTING, ended, lasted=ended - began)
    assert analyse(made.ended(140).done()).verdict is outcome


@pytest.mark.parametrize(
    ("ticks", "code", "outcome"),
    [
        (400, 0, Outcome.GROWING),
        (400, 1, Outcome.UNKNOWN),
        (400, 3, Outcome.GROWING),
        (8000, 1, Outcome.GROWING),
    ],
)
def test_a_program_that_fails_before_its_first_step_was_starting_up(
    tmp_path: pathlib.Path, ticks: int, code: int, outcome: Outcome
) -> None:
    """Breaks when the tables that it had read are a leak."""
    made = Maker(tmp_path).process()
    made.steps(ticks, source="tick", in_use=line(50 * KIB), rss=line(50 * KIB))
    report = analyse(made.ended(ticks, code=code).done())
    assert report.verdict is outcome
    assert ("failed before it made a step" in report.because) is (outcome is Outcome.UNKNOWN)
    assert not report.findings
    assert (report.forecast is None) is (outcome is Outcome.UNKNOWN)


def test_a_program_that_made_steps_and_fails_is_judged_by_the_clock_too(
    tmp_path: pathlib.Path,
) -> None:
    """Breaks when `--steps-from time` says of a thousand steps that there was none."""
    made = recording(tmp_path).steps(400, in_use=line(50 * KIB), rss=line(50 * KIB))
    made.resident(range(400), line(50 * KIB))
    read = made.ended(400, code=1).done()
    read.run = replace(read.run, settings={"steps_from": "time"})
    report = analyse(read)
    assert report.steps_from == "time"
    assert report.verdict is Outcome.GROWING


def test_a_program_that_fails_for_want_of_memory_is_judged(tmp_path: pathlib.Path) -> None:
    made = Maker(tmp_path).process()
    made.steps(400, source="tick", in_use=line(50 * KIB), rss=line(50 * KIB))
    made.box(BlackBox(made.at(399), "", "host", "nearly full", {}, ()))
    assert analyse(made.ended(400, code=1).done()).verdict is Outcome.GROWING


def test_of_few_values_none_is_left_out() -> None:
    """Breaks when nine values, close together at first, become seven, which nobody judges."""
    few = np.array([0.6, 1.1, 1.7, 2.2, 2.8, 3.5, 4.2, 6.6, 9.0])
    assert list(even_out(few)) == list(range(9))
    many = np.concatenate((np.arange(0, 20, 0.1), np.arange(20, 400, 10.0)))
    assert 30 < len(even_out(many)) < 50


def test_exact_counters_may_call_a_short_program_steady(tmp_path: pathlib.Path) -> None:
    made = Maker(tmp_path).process()
    made.steps(15, source="tick", in_use=flat(), blocks=flat(1000), rss=flat())
    assert analyse(made.ended(15).done()).verdict is Outcome.STEADY


def test_a_kill_is_told_with_the_step_and_how_full_memory_was(tmp_path: pathlib.Path) -> None:
    made = recording(tmp_path, limit_bytes=GIB)
    made.steps(412, in_use=line(1 * MIB), rss=line(1 * MIB, 200 * MIB))
    made.machine(
        range(0, 413, 4),
        cgroup_use_bytes=lambda step: GIB * (0.5 + 0.49 * step / 412),
        oom_kills_count=lambda step: 1.0 if step >= 412 else 0.0,
    )
    report = analyse(made.ended(413, signal=9).done())
    assert report.ending.signal == 9
    assert "step 412" in report.ending.says
    assert "99 %" in report.ending.says
    assert "OOM" in report.ending.says


def test_an_early_end_is_unknown_and_says_what_would_settle_it(tmp_path: pathlib.Path) -> None:
    report = analyse(recording(tmp_path).steps(5, in_use=flat(), rss=flat()).ended(5).done())
    assert report.verdict is Outcome.UNKNOWN
    assert "run at least 60" in report.because


def test_an_empty_recording_is_unknown(tmp_path: pathlib.Path) -> None:
    report = analyse(recording(tmp_path).done())
    assert report.verdict is Outcome.UNKNOWN
    assert report.steps == 0


def test_the_first_optimizer_step_and_its_state_are_told(tmp_path: pathlib.Path) -> None:
    made = recording(tmp_path).steps(
        200, first=0, in_use=step_up(1, 40 * MIB), rss=step_up(1, 40 * MIB, 300 * MIB)
    )
    made.roles(4, parameter=20 * MIB, gradient=20 * MIB, optimizer_state=40 * MIB)
    report = analyse(made.ended(200).done())
    assert report.verdict is Outcome.STEADY
    note = next(one.says for one in report.harmless if one.rule == "LS002")
    assert "40 MiB" in note
    assert "2.0 times the parameters" in note


def test_saves_are_told_with_their_period_and_size(tmp_path: pathlib.Path) -> None:
    made = recording(tmp_path).steps(200, in_use=flat(), rss=flat(300 * MIB))
    for step in range(20, 201, 20):
        made.mark("save", step + 0.4, in_use_bytes=160 * MIB)
        made.mark("save", step + 0.6, in_use_bytes=160 * MIB)
    report = analyse(made.ended(200).done())
    note = next(one.says for one in report.harmless if one.rule == "LS003")
    assert "10 checkpoints" in note
    assert "60 MiB" in note
    assert "not a leak" in note


def test_the_parts_of_the_peak_add_up(tmp_path: pathlib.Path) -> None:
    made = recording(tmp_path).steps(
        100, in_use=flat(120 * MIB), held=flat(10 * MIB), rss=flat(300 * MIB)
    )
    made.resident(range(0, 100, 3), step_up(50, 40 * MIB, 300 * MIB))
    made.roles(4, parameter=20 * MIB, gradient=20 * MIB, optimizer_state=40 * MIB)
    peak = analyse(made.ended(100).done()).peak
    assert peak is not None
    assert peak.total_bytes == 340 * MIB
    assert sum(peak.parts.values()) == peak.total_bytes
    assert peak.parts["transient, within a step"] == 40 * MIB
    assert peak.parts["optimizer state"] == 40 * MIB


def test_processes_keep_their_names_apart(tmp_path: pathlib.Path) -> None:
    made = Maker(tmp_path).process(command=("torchrun", "x.py"))
    for rank in (0, 1):
        made.process(10 + rank, kind="child", parent=1, RANK=str(rank))
        made.process(20 + rank, kind="worker", parent=10 + rank, name="worker 0", RANK=str(rank))
    names = {summary.name for summary in analyse(made.ended(1).done()).processes}
    assert names == {"main", "rank 0", "rank 1", "rank 0 worker 0", "rank 1 worker 0"}


def test_what_was_not_seen_is_said_once(tmp_path: pathlib.Path) -> None:
    made = recording(tmp_path).steps(60, in_use=flat(), rss=flat())
    made.gap("smaps", "permission denied").gap("smaps", "permission denied")
    made.process(5, kind="child", parent=1, followed=False)
    spots = analyse(made.ended(60).done()).blind_spots
    assert [spot.what for spot in spots].count("smaps") == 1
    assert any("process 5" in spot.what for spot in spots)


def test_pages_of_mapped_files_are_not_growth(tmp_path: pathlib.Path) -> None:
    """Reading a data set once through a map fills resident memory with pages the kernel owns."""
    made = recording(tmp_path).steps(
        200, in_use=flat(), held=flat(MIB), rss=line(400 * KIB, 300 * MIB)
    )
    for step in range(5, 200, 20):
        made.sample(step, file_bytes=50 * MIB + 400 * KIB * step)
    report = analyse(made.ended(200).done())
    assert report.verdict is Outcome.STEADY
    assert "mapped files" in verdict_of(report, "process.rss_bytes").because
    assert report.forecast is None


def test_growth_outside_of_malloc_is_growth(tmp_path: pathlib.Path) -> None:
    """The same without file pages: shared memory, a library's pool."""
    made = recording(tmp_path).steps(
        200, in_use=flat(), held=flat(MIB), rss=line(400 * KIB, 300 * MIB)
    )
    for step in range(5, 200, 20):
        made.sample(step, file_bytes=50 * MIB)
    report = analyse(made.ended(200).done())
    assert report.verdict is Outcome.GROWING
    assert "outside of both" in report.because


def test_a_little_outside_of_malloc_is_not(tmp_path: pathlib.Path) -> None:
    """Breaks when 2 MiB of stacks and pools, in 250 steps that keep nothing, are growth."""
    made = recording(tmp_path).steps(
        250, in_use=flat(), held=flat(MIB), blocks=flat(1000), rss=line(9 * KIB, 300 * MIB)
    )
    report = analyse(made.ended(250).done())
    assert verdict_of(report, "process.rss_bytes").outcome is Outcome.GROWING
    assert report.verdict is Outcome.STEADY


def test_a_rise_after_the_last_step_is_not_called_steady(tmp_path: pathlib.Path) -> None:
    """Training over, testing keeps everything: what was not counted must not be answered for."""
    made = recording(tmp_path).steps(200, in_use=flat(), rss=flat(300 * MIB))
    made.resident(range(1, 400, 2), lambda step: 300 * MIB + max(step - 200, 0) * MIB)
    report = analyse(made.ended(400).done())
    assert report.verdict is Outcome.UNKNOWN
    assert "after the last" in report.because
    assert report.peak is not None
    assert report.peak.total_bytes == 300 * MIB


def test_many_blocks_without_a_collection_are_unknown(tmp_path: pathlib.Path) -> None:
    """1.5 KiB a step of small objects may be garbage or kept; nobody has looked yet."""
    made = recording(tmp_path).steps(
        400, in_use=flat(), blocks=line(22, 1_000_000), rss=flat(300 * MIB)
    )
    report = analyse(made.ended(400).done())
    assert report.verdict is Outcome.UNKNOWN
    assert "gc.collect()" in report.because


@pytest.mark.parametrize(("fell", "outcome"), [(0, Outcome.GROWING), (300_000, Outcome.UNKNOWN)])
def test_small_objects_that_were_given_back_leave_their_pages(
    tmp_path: pathlib.Path, fell: int, outcome: Outcome
) -> None:
    """Breaks when the pages of a tree in cycles, collected once, are growth."""

    def live(step: int) -> float:
        return 100 * MIB + 5 * KIB * step - 3 * MIB * (step > 300) - 3 * MIB * (step > 360)

    made = recording(tmp_path).steps(
        400,
        in_use=live,
        blocks=lambda step: 1_000_000 + fell * (step / 250 - (step > 250)),
        rss=line(120 * KIB, 300 * MIB),
    )
    made.mark("collection", 250)
    report = analyse(made.ended(400).done())
    assert verdict_of(report, "heap.in_use_bytes").outcome is Outcome.UNKNOWN
    assert verdict_of(report, "process.rss_bytes").outcome is Outcome.GROWING
    assert report.verdict is outcome


@pytest.mark.parametrize(
    ("teeth_risen", "outcome"), [(0.8, Outcome.UNKNOWN), (4.0, Outcome.GROWING)]
)
def test_resident_memory_follows_the_highest_tooth(
    tmp_path: pathlib.Path, teeth_risen: float, outcome: Outcome
) -> None:
    """Breaks when pages of a few uneven teeth are called growth, or more than that is not."""
    tooth, steps = 10 * MIB, 200

    def live(step: float) -> float:
        number, place = divmod(step, 45)
        return 100 * MIB + tooth * (0.35 * number + place / 45)

    made = recording(tmp_path).steps(
        steps, in_use=live, rss=line(teeth_risen * tooth / steps, 300 * MIB)
    )
    report = analyse(made.done())
    assert verdict_of(report, "heap.in_use_bytes").outcome is Outcome.UNKNOWN
    assert verdict_of(report, "process.rss_bytes").outcome is Outcome.GROWING
    assert report.verdict is outcome
