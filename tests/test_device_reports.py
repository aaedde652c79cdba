"""Recordings of programs with GPUs, made by hand: what the report says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leakscope.analysis import analyse
from leakscope.model import (
    BACKWARD,
    DEVICE_TOOL,
    DRIVER_GAP,
    BlackBox,
    Frame,
    Moment,
    Occupant,
    Outcome,
    Report,
    Shape,
    SiteTally,
)
from leakscope.render.style import Style
from leakscope.render.to_markdown import render as as_markdown
from leakscope.render.to_terminal import render as as_text
from make import GIB, KIB, MIB, Maker, flat, line, recording, rising_until

HERE = "/there/train.py"
PROGRAM = """
def fit():
    kept = []
    for batch in batches:
        loss = model(batch)
        loss.backward()
        kept.append(loss)
"""


def on_gpu(maker: Maker, allocated: Any, reserved: Any, *, steps: int = 300, **more: Any) -> Maker:
    columns = {"cuda:0.allocated_bytes": allocated, "cuda:0.reserved_bytes": reserved, **more}
    return maker.steps(
        steps, source="forward", in_use=flat(), rss=flat(300 * MIB), blocks=flat(1e6), **columns
    )


def leaking(tmp_path: Path) -> Maker:
    return (
        on_gpu(recording(tmp_path), line(MIB), line(MIB, 120 * MIB))
        .looked(20, 60, flat(), source="forward")
        .holds("kept", 1.0, MIB + 300, on_device={"cuda:0": float(MIB)})
        .source(PROGRAM)
    )


def verdict_on(report: Report, metric: str) -> Any:
    return next(one for one in report.verdicts if one.series.metric == metric)


def test_a_leak_on_the_device_is_told_with_its_device(tmp_path: Path) -> None:
    report = analyse(leaking(tmp_path).done())
    assert report.verdict is Outcome.LEAK
    assert "GPU memory in use (cuda:0) grows by +1.0 MiB/step" in report.because
    (finding,) = report.findings
    assert finding.share > 0.99
    assert finding.keeper is not None
    assert finding.keeper.source == "kept.append(loss)"
    assert verdict_on(report, "heap.in_use_bytes").outcome is Outcome.STEADY


def test_what_the_holder_has_in_the_host_does_not_explain_the_device(tmp_path: Path) -> None:
    made = on_gpu(recording(tmp_path), line(MIB), line(MIB, 120 * MIB))
    made.looked(20, 60, flat(), source="forward").holds("kept", 1.0, float(MIB)).source(PROGRAM)
    report = analyse(made.done())
    assert report.verdict is Outcome.GROWING
    assert report.findings == ()


def test_the_device_is_what_runs_out_first(tmp_path: Path) -> None:
    made = leaking(tmp_path).device(
        300, allocated=400 * MIB, reserved=420 * MIB, free=580 * MIB, total=1200 * MIB
    )
    ahead = analyse(made.done()).forecast
    assert ahead is not None
    assert "memory of cuda:0" in ahead.limit_from
    # 200 MiB are others', 400 in use: 600 are left, at 1 MiB a step.
    assert abs(ahead.steps_left.value - 600) < 10


def test_reserved_that_grows_alone_is_fragmentation(tmp_path: Path) -> None:
    made = on_gpu(recording(tmp_path), flat(), line(4 * MIB, 120 * MIB))
    report = analyse(made.done())
    assert report.verdict is Outcome.GROWING
    assert verdict_on(report, "cuda.reserved_bytes").shape is Shape.FRAGMENTATION
    assert [one.rule for one in report.harmless] == ["LS041"]
    assert report.findings == ()


def test_pools_of_graphs_that_grow_are_no_fragmentation(tmp_path: Path) -> None:
    made = on_gpu(recording(tmp_path), flat(), line(4 * MIB, 120 * MIB))
    for step in (50, 150, 250):
        pool = 4 * MIB * step
        made.device(step, allocated=100 * MIB, reserved=2 * GIB, free=GIB, total=4 * GIB, pool=pool)
    made.looked(20, 60, flat(), source="forward")
    made.holds("kept", 1.0, 4 * MIB + 100, on_device={"cuda:0": 4.0 * MIB}).source(PROGRAM)
    report = analyse(made.done())
    assert "pools of CUDA graphs" in report.because
    assert report.verdict is Outcome.LEAK
    assert [one.rule for one in report.harmless] == []


def test_a_cache_that_filled_up_is_steady(tmp_path: Path) -> None:
    reserved = rising_until(40, 20 * MIB, 200 * MIB)
    made = on_gpu(recording(tmp_path), flat(), reserved)
    made.device(
        300, allocated=100 * MIB, reserved=GIB, free=GIB, total=GIB, peak_allocated=900 * MIB
    )
    report = analyse(made.done())
    assert report.verdict is Outcome.STEADY
    assert "LS042" in {one.rule for one in report.harmless}


def test_a_cache_is_not_that_of_a_high_point_which_there_was_not(tmp_path: Path) -> None:
    reserved = rising_until(40, 20 * MIB, 200 * MIB)
    made = on_gpu(recording(tmp_path), flat(), reserved)
    made.device(
        300, allocated=100 * MIB, reserved=GIB, free=GIB, total=GIB, peak_allocated=104 * MIB
    )
    report = analyse(made.done())
    assert report.verdict is Outcome.STEADY
    assert "LS042" not in {one.rule for one in report.harmless}


def test_pinned_memory_is_judged_by_itself(tmp_path: Path) -> None:
    made = on_gpu(recording(tmp_path), flat(), flat())
    for step in range(5, 300, 5):
        made.device(
            step, allocated=MIB, reserved=MIB, free=GIB, total=GIB, pinned=step * 64 * KIB + MIB
        )
    report = analyse(made.done())
    assert report.verdict is Outcome.GROWING
    assert report.because.startswith("Pinned host memory grows by +64.0 KiB/step")


def test_lines_are_told_where_nobody_holds(tmp_path: Path) -> None:
    made = on_gpu(recording(tmp_path), line(MIB), line(MIB, 120 * MIB))
    made.looked(20, 60, flat(), source="forward").source(PROGRAM)
    made.window(60, SiteTally((Frame(HERE, 5),), 2, 2 * MIB), steps=2, tool=DEVICE_TOOL)
    report = analyse(made.done())
    (finding,) = report.findings
    assert finding.rule == "LS401"
    assert finding.site is not None
    assert finding.site.source == "loss = model(batch)"


def test_what_the_backward_pass_made_has_the_line_that_started_it(tmp_path: Path) -> None:
    made = on_gpu(recording(tmp_path), line(MIB), line(MIB, 120 * MIB)).source(PROGRAM)
    made.looked(20, 60, flat(), source="forward")
    sites = (SiteTally((Frame(BACKWARD, 0),), 4),)
    made.holds("kept", 1.0, float(MIB), on_device={"cuda:0": float(MIB)}, sites=sites)
    (finding,) = analyse(made.done()).findings
    assert finding.site is not None
    assert finding.site.source == "loss.backward()"


def four_levels(tmp_path: Path) -> Maker:
    made = Maker(tmp_path).process(**{"cuda:0": "GPU-1 a GPU"})  # type: ignore[arg-type]
    on_gpu(made, flat(100 * MIB), flat(150 * MIB))
    made.device(280, allocated=100 * MIB, reserved=150 * MIB, free=GIB, total=4 * GIB, split=0)
    made.counted(200, "cuda:0", parameter=60 * MIB, none=8 * MIB)
    return made.driver(
        280, "GPU-1", total=4 * GIB, driver=0, used=2 * GIB, process_1=250 * MIB, process_99=GIB
    )


def test_the_levels_add_up_and_others_are_shown_as_such(tmp_path: Path) -> None:
    (levels,) = analyse(four_levels(tmp_path).done()).devices
    assert levels.name == "a GPU"
    assert levels.driver_bytes == 250 * MIB == sum(levels.parts.values())
    assert levels.others_bytes == GIB
    assert levels.parts["context and libraries, outside of the allocator"] == 100 * MIB
    assert levels.parts["reserved by the allocator, free for reuse"] == 50 * MIB
    assert levels.parts["parameters"] == 60 * MIB
    assert levels.parts["tensors the program holds"] == 32 * MIB
    assert "A restart gives back 250 MiB, torch.cuda.empty_cache() 50 MiB" in levels.says


def test_without_the_driver_the_levels_begin_at_reserved(tmp_path: Path) -> None:
    made = on_gpu(recording(tmp_path), flat(100 * MIB), flat(150 * MIB))
    made.device(280, allocated=100 * MIB, reserved=150 * MIB, free=GIB, total=4 * GIB)
    made.gap(DRIVER_GAP, "no NVIDIA driver")
    report = analyse(made.done())
    (levels,) = report.devices
    assert levels.driver_bytes is None
    assert sum(levels.parts.values()) == 150 * MIB
    assert DRIVER_GAP in {gap.what for gap in report.blind_spots}


def test_a_missing_driver_is_no_gap_of_a_program_without_devices(tmp_path: Path) -> None:
    made = recording(tmp_path).steps(300, in_use=flat()).gap(DRIVER_GAP, "no NVIDIA driver")
    assert analyse(made.done()).blind_spots == ()


def test_two_ranks_on_two_devices_are_one_verdict(tmp_path: Path) -> None:
    made = Maker(tmp_path).process(1, RANK="0").process(2, kind="child", parent=1, RANK="1")
    for pid in (1, 2):
        device = f"cuda:{pid - 1}"
        columns: dict[str, Any] = {
            f"{device}.allocated_bytes": line(MIB),
            f"{device}.reserved_bytes": line(MIB),
        }
        made.steps(300, pid=pid, in_use=flat(), rss=flat(300 * MIB), **columns)
    report = analyse(made.done())
    assert report.verdict is Outcome.GROWING
    assert "2 processes grow by 2.0 MiB per step together" in report.because
    assert "on cuda:0" in report.because
    assert "on cuda:1" in report.because


BOX = BlackBox(
    at=Moment(0, 0, 212),
    process="",
    where="cuda:0",
    why="out of memory",
    values={
        "wanted_bytes": 64 * MIB,
        "allocated_bytes": 900 * MIB,
        "reserved_bytes": 980 * MIB,
        "limit_bytes": 990 * MIB,
    },
    occupants=(
        Occupant(
            "tensor",
            "Tensor [64, 512] float32",
            "local kept in fit() list",
            400,
            800 * MIB,
            (Frame("/tmp/torchinductor_me/ab/c.py", 3), Frame(HERE, 5)),
        ),
        Occupant("none", "", "", 1, 100 * MIB),
    ),
    matched_bytes=800 * MIB,
)


def test_the_report_leads_with_what_filled_the_memory(tmp_path: Path) -> None:
    report = analyse(leaking(tmp_path).box(BOX).ended(300, code=1).done())
    (moment,) = report.black_boxes
    assert moment.says.startswith("cuda:0 ran out at step 212: 64 MiB were asked for, 900 MiB of")
    assert "80 MiB more were reserved and free, in pieces that were too small" in moment.says
    first = moment.contents[0]
    assert first.site is not None
    assert (first.site.line, first.is_compiled) == (5, True)
    assert "after cuda:0 had run out of memory" in report.ending.says
    shown = as_text(report, Style(width=100))
    assert 0 < shown.index("FULL  cuda:0 ran out") < shown.index("LS")
    assert "made in a compiled region called at train.py:5" in " ".join(shown.split())
    assert "a tensor was found for 89 % of the bytes" in shown
    assert "FULL: cuda:0 ran out" in as_markdown(report, Style(width=100))


def test_the_page_has_the_levels(tmp_path: Path) -> None:
    report = analyse(four_levels(tmp_path).done())
    shown = as_text(report, Style(width=100))
    assert "cuda:0, a GPU with 4 GiB" in shown
    assert "GPU, in use, cuda:0" in shown
    assert "context and libraries" in as_markdown(report, Style(width=100))
