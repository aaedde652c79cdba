"""Growth and who accounts for it: the report adds up, and says LEAK only with evidence."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakscope.analysis import analyse
from leakscope.model import Frame, Outcome, Report, SiteTally
from make import KIB, Maker, flat, line, recording

PROGRAM = """\
def fit(model, data):
    kept = []
    others = []
    for x in data:
        y = model(x)
        kept.append(y)
        others.append(x)
"""


def growing(directory: Path, per_step: float = 30 * KIB) -> Maker:
    """A run of 200 steps that grows, looked at twice."""
    maker = recording(directory).steps(200, in_use=line(per_step), blocks=flat(1000))
    return maker.looked(20, 60, line(per_step)).source(PROGRAM)


def test_a_holder_of_the_growth_makes_it_a_leak(tmp_path: Path) -> None:
    report = analyse(growing(tmp_path).holds("kept", 1.0, 29 * KIB).done())
    assert report.verdict is Outcome.LEAK
    (finding,) = report.findings
    assert finding.keeper is not None
    assert (finding.keeper.file, finding.keeper.line) == ("train.py", 6)
    assert finding.share == pytest.approx(29 / 30, rel=0.02)
    assert "kept" in " ".join(finding.holder)


def test_statistics_alone_say_growing(tmp_path: Path) -> None:
    report = analyse(growing(tmp_path).done())
    assert report.verdict is Outcome.GROWING
    assert report.findings == ()


def test_a_holder_of_a_small_part_is_told_but_proves_nothing(tmp_path: Path) -> None:
    report = analyse(growing(tmp_path).holds("kept", 1.0, 6 * KIB).done())
    assert report.verdict is Outcome.GROWING
    assert report.findings[0].share == pytest.approx(0.2, rel=0.05)


def test_a_bounded_holder_proves_nothing(tmp_path: Path) -> None:
    bound = "it is a deque with maxlen=1,000"
    report = analyse(growing(tmp_path).holds("kept", 1.0, 29 * KIB, bound=bound).done())
    assert report.verdict is Outcome.GROWING
    assert "maxlen" in report.findings[0].says


def test_resident_growth_is_not_explained_by_a_little_live_growth(tmp_path: Path) -> None:
    """Breaks when a list of 200 bytes a step is blamed for 300 KiB a step outside of malloc."""
    maker = recording(tmp_path).steps(
        200, in_use=line(200.0), rss=line(300 * KIB), blocks=flat(1000)
    )
    report = analyse(
        maker.looked(20, 60, line(200.0)).source(PROGRAM).holds("kept", 1.0, 200).done()
    )
    assert report.verdict is Outcome.GROWING
    assert sum(finding.share for finding in report.findings) < 0.1


def test_a_steady_run_has_no_findings_whatever_was_seen(tmp_path: Path) -> None:
    maker = recording(tmp_path).steps(200, in_use=flat(), blocks=flat(1000))
    report = analyse(maker.looked(20, 60, line(5)).holds("kept", 1.0, 29 * KIB).done())
    assert report.verdict is Outcome.STEADY
    assert (report.findings, report.unexplained) == ((), {})


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(["kept", "others"]), st.floats(1, 80)), max_size=2),
    st.floats(5, 60),
)
def test_findings_and_the_unexplained_are_the_growth(
    tmp_path_factory: pytest.TempPathFactory, holders: list[tuple[str, float]], rate: float
) -> None:
    """Breaks when two holders of the same things count them twice, or something is lost."""
    maker = growing(tmp_path_factory.mktemp("run"), rate * KIB)
    for name, each in dict(holders).items():
        maker.holds(name, 1.0, each * KIB)
    report = analyse(maker.done())
    growth = sum(v.bytes_per_step.value for v in report.verdicts[:1])
    assert _accounted(report) == pytest.approx(growth, rel=1e-6)
    assert all(value >= -1e-6 for value in report.unexplained.values())


def _accounted(report: Report) -> float:
    found = sum(finding.bytes_per_step for finding in report.findings)
    return found + sum(report.unexplained.values())


def test_the_same_leak_in_two_workers_is_one_finding(tmp_path: Path) -> None:
    maker = recording(tmp_path).steps(200, in_use=flat(), blocks=flat(1000))
    for number in (2, 3):
        maker.process(number, kind="worker", parent=1, name=f"worker {number - 2}")
        maker.steps(200, pid=number, source="fetch", in_use=line(30 * KIB), blocks=flat(1000))
        maker.looked(20, 60, line(30 * KIB), pid=number, source="fetch").source(PROGRAM, pid=number)
        maker.holds("kept", 1.0, 29 * KIB, pid=number)
    report = analyse(maker.done())
    (finding,) = report.findings
    assert finding.processes == ("worker 0", "worker 1")
    assert finding.bytes_per_step == pytest.approx(2 * 29 * KIB, rel=0.05)


def native(line_number: int, count: int, size: int) -> SiteTally:
    return SiteTally((Frame("/lib/x.py", 3), Frame("/there/train.py", line_number)), count, size)


def windows(maker: Maker, *lines: tuple[int, int, int, int]) -> Maker:
    """A window of 3 steps and one of 9: (line, blocks left by the first, by the second, size)."""
    maker.window(70, *(native(n, a, a * size) for n, a, _, size in lines), steps=3)
    return maker.window(80, *(native(n, b, b * size) for n, _, b, size in lines), steps=9)


def test_native_memory_that_piles_up_over_a_longer_window_is_evidence(tmp_path: Path) -> None:
    report = analyse(windows(growing(tmp_path), (5, 3, 9, 30 * KIB), (7, 4, 4, 900 * KIB)).done())
    assert report.verdict is Outcome.LEAK
    (finding,) = report.findings
    assert finding.site is not None
    assert (finding.site.line, finding.rule) == (5, "LS601")


def test_what_a_step_has_in_flight_is_no_leak(tmp_path: Path) -> None:
    """Breaks when gradients that are alive at the end of every window are blamed."""
    report = analyse(windows(growing(tmp_path), (5, 6, 6, 100 * KIB)).done())
    assert (report.verdict, report.findings) == (Outcome.GROWING, ())


def test_lists_of_objects_are_not_called_native(tmp_path: Path) -> None:
    """Breaks when what Python's objects have outside of its arenas is said to be nobody's."""
    maker = recording(tmp_path).source(PROGRAM).looked(40, 60, line(30 * KIB))
    maker = maker.steps(200, in_use=line(30 * KIB), blocks=lambda step: 10**6 + 100 * step)
    report = analyse(windows(maker, (5, 3, 9, 30 * KIB)).done())
    assert [finding.rule for finding in report.findings] == []
    assert report.verdict is Outcome.GROWING


def test_a_line_that_leaves_far_more_than_memory_grows_by_has_it_freed_later(
    tmp_path: Path,
) -> None:
    """Breaks when buffers in flight, larger in the longer window, are taken for the growth."""
    report = analyse(windows(growing(tmp_path), (5, 3, 9, 3000 * KIB)).done())
    assert report.findings == ()
    assert report.verdict is Outcome.GROWING


def test_one_native_window_is_not_enough(tmp_path: Path) -> None:
    report = analyse(growing(tmp_path).window(70, native(5, 6, 6 * 30 * KIB)).done())
    assert (report.verdict, report.findings) == (Outcome.GROWING, ())


def test_a_native_line_seen_in_one_window_only_is_left_out(tmp_path: Path) -> None:
    maker = growing(tmp_path).window(70, native(5, 6, 6 * 30 * KIB), steps=3)
    report = analyse(maker.window(80, native(7, 6, 6 * 30 * KIB), steps=9).done())
    assert report.findings == ()


def test_where_it_was_made_is_the_innermost_line_of_the_program(tmp_path: Path) -> None:
    maker = growing(tmp_path).holds("kept", 1.0, 29 * KIB, sites=(native(5, 4, 0),))
    (finding,) = analyse(maker.done()).findings
    assert finding.site is not None
    assert (finding.site.file, finding.site.line, finding.site.function) == ("train.py", 5, "fit")


@pytest.mark.parametrize(("each", "outcome"), [(30, Outcome.LEAK), (15, Outcome.GROWING)])
def test_a_warm_up_around_the_looks_takes_nothing_from_a_holder(
    tmp_path: Path, each: int, outcome: Outcome
) -> None:
    """What it takes is what memory has grown by ever since; half of that would prove nothing."""

    def curve(step: int) -> float:
        return 100 * KIB * KIB + 30 * KIB * step + 200 * KIB * min(step, 120)

    maker = recording(tmp_path).steps(600, in_use=curve, blocks=flat(1000))
    maker.looked(20, 60, curve).source(PROGRAM).holds("kept", 1.0, each * KIB)
    report = analyse(maker.done())
    assert report.verdict is outcome
    if outcome is Outcome.LEAK:
        assert report.findings[0].share == pytest.approx(1.0, abs=0.15)


def test_numbers_are_small_blocks_where_resident_memory_says_so(tmp_path: Path) -> None:
    """2,000 numbers a step take 62 KiB; at the usual size of a block it would be 139."""

    def live(step: int) -> float:
        return 100 * KIB * KIB + 16 * KIB * step

    def resident(step: int) -> float:
        return 300 * KIB * KIB + 78 * KIB * step

    maker = recording(tmp_path).steps(
        600, in_use=live, blocks=lambda step: 1e6 + 2000 * step, rss=resident
    )
    maker.looked(20, 60, live).source(PROGRAM).holds("kept", 1.0, 78 * KIB)
    report = analyse(maker.done())
    assert report.verdict is Outcome.LEAK
    assert report.findings[0].share == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(("held", "kib"), [(1.0, 31.25), (0.6, 31.25), (0.4, 69.34)])
def test_blocks_are_as_large_as_those_that_holders_keep(
    tmp_path: Path, held: float, kib: float
) -> None:
    """1,000 blocks a step, numbers that a list keeps or 0.6 of them, each of 32 bytes: then all are
    taken to be so. A list with fewer than half says nothing of the others."""

    def blocks(step: int) -> float:
        return 1e6 + 1000 * step

    maker = recording(tmp_path).steps(200, in_use=flat(100 * KIB), blocks=blocks)
    maker.looked(20, 60, flat(100 * KIB), blocks=blocks).source(PROGRAM)
    kept = 1000 * held
    report = analyse(maker.holds("kept", 1.0, 32 * kept, blocks=(kept, 32 * kept)).done())
    assert report.verdicts[0].bytes_per_step.value == pytest.approx(kib * KIB, rel=0.01)
    assert report.findings[0].share == pytest.approx(31.25 * held / kib, rel=0.02)


@pytest.mark.parametrize("seed", [5, 6])
def test_a_share_of_blocks_is_not_made_smaller_by_what_steps_have_in_flight(
    tmp_path: Path, seed: int
) -> None:
    """Python's blocks decide, malloc's counter moves by megabytes: its slope is no growth."""
    chance = random.Random(seed)

    def live(step: int) -> float:
        return 100 * KIB * KIB + 60 * KIB * step + 40 * KIB * KIB * chance.random()

    maker = recording(tmp_path).steps(
        200, in_use=live, blocks=lambda step: 1e5 + 560 * step, rss=flat(300 * KIB * KIB)
    )
    maker.looked(20, 110, live).source(PROGRAM).holds("kept", 1.0, 50 * KIB, last=110)
    report = analyse(maker.done())
    assert report.verdict is Outcome.LEAK
    assert "memory blocks" in report.because
    assert report.findings[0].share == pytest.approx(1.0, abs=0.05)


def test_what_goes_on_for_ever_has_its_part_before_what_will_stop(tmp_path: Path) -> None:
    """A ring and a table keep the same things; the ring has an end."""
    maker = growing(tmp_path)
    maker.holds("kept", 1.0, 29 * KIB, bound="it is a deque with maxlen=250")
    maker.holds("others", 1.0, 35 * KIB)
    report = analyse(maker.done())
    first, second = report.findings
    assert "others" in first.says
    assert first.share == pytest.approx(35 / 64, rel=0.05)
    assert first.share + second.share <= 1.0
    assert report.verdict is Outcome.LEAK
