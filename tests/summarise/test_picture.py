"""What is drawn is what was recorded: nothing lost in thinning, layers that add up."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import make
from leakscope.analysis import analyse_with_picture
from leakscope.model import Panel, Picture
from leakscope.summarise.thin import exactly_at, extremes, held_at
from make import KIB, MIB

_KEEPER = "def fit():\n    history = []\n    for x in data:\n        history.append(x)\n"


def _picture(maker: make.Maker) -> Picture:
    return analyse_with_picture(maker.done()).picture


def _leaking(folder: pathlib.Path, steps: int = 300) -> make.Maker:
    return (
        make.recording(folder)
        .steps(
            steps,
            in_use=make.line(40 * KIB),
            held=make.flat(9 * MIB),
            rss=make.line(50 * KIB, 400 * MIB),
            blocks=make.flat(100_000),
            collections_every=50,
        )
        .roles(1, parameter=4 * MIB, gradient=4 * MIB, optimizer_state=8 * MIB)
        .looked(20, 60, make.line(40 * KIB))
        .holds("history", 1, 40 * KIB)
        .source("\n" * 8 + _KEEPER)
        .ended(steps + 1)
    )


def _curve(panel: Panel, metric: str) -> list[float]:
    (found,) = (one for one in panel.curves if one.metric == metric)
    return _read(found.values)


def _read(values: tuple[float | None, ...]) -> list[float]:
    return [value for value in values if value is not None]


@given(
    st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=400),
    st.integers(1, 40),
)
def test_thinning_keeps_both_ends_and_every_extreme(values: list[float], stretches: int) -> None:
    steps, read = np.arange(len(values), dtype=float), np.array(values)
    chosen = extremes(steps, read, stretches)
    assert len(chosen) <= 2 * stretches + 2
    assert chosen[0] == 0
    assert chosen[-1] == len(values) - 1
    assert read[chosen].max() == read.max()
    assert read[chosen].min() == read.min()
    assert (np.diff(chosen) > 0).all() or len(chosen) == 1


def test_a_value_holds_until_the_next_one_and_is_told_only_where_it_was_read() -> None:
    steps, values = np.array([2.0, 5.0]), np.array([10.0, 20.0])
    wanted = np.array([1.0, 2.0, 4.0, 5.0, 9.0])
    assert held_at(steps, values, wanted).tolist() == [10, 10, 10, 20, 20]
    assert exactly_at(steps, values, wanted) == (None, 10.0, None, 20.0, None)


def test_the_layers_add_up_to_resident_memory(tmp_path: pathlib.Path) -> None:
    (panel,) = _picture(_leaking(tmp_path)).panels
    total = np.sum([_read(layer.values) for layer in panel.layers], axis=0)
    assert total.tolist() == pytest.approx(_curve(panel, "process.rss_bytes"))
    assert min(min(_read(layer.values)) for layer in panel.layers) >= 0
    sizes = {layer.role: layer.values[-1] for layer in panel.layers}
    assert sizes["parameters"] == 4 * MIB
    assert sizes["optimizer state"] == 8 * MIB
    assert sizes["freed"] == 9 * MIB


def test_what_a_finding_keeps_is_drawn_and_says_where_it_was_seen(tmp_path: pathlib.Path) -> None:
    exhibit = analyse_with_picture(_leaking(tmp_path).done())
    (kept,) = (one for one in exhibit.picture.panels[0].layers if one.role == "kept")
    assert (kept.seen_from, kept.seen_to) == (20.0, 60.0)
    assert kept.values[-1] == pytest.approx(300 * 40 * KIB, rel=0.02)
    assert kept.fingerprint == exhibit.report.findings[0].fingerprint


def test_without_counters_of_the_heap_there_is_resident_memory(tmp_path: pathlib.Path) -> None:
    maker = make.recording(tmp_path).steps(100, rss=make.step_up(50, 8 * MIB)).ended(101)
    (panel,) = _picture(maker).panels
    constant, resident = panel.layers
    assert set(constant.values) == {100.0 * MIB}
    assert resident.values[0] == 0
    assert resident.values[-1] == 8 * MIB


def test_many_rows_become_few_and_the_spike_stays(tmp_path: pathlib.Path) -> None:
    def spiky(step: int) -> float:
        return 100 * MIB + (64 * MIB if step == 13_337 else 0)

    maker = make.recording(tmp_path).steps(30_000, in_use=spiky, rss=make.flat(300 * MIB))
    (panel,) = _picture(maker.ended(30_001)).panels
    assert panel.rows == 30_000
    assert len(panel.steps) < 7_000
    assert max(_curve(panel, "heap.in_use_bytes")) == 164 * MIB
    place = panel.steps.index(13_337.0)
    assert panel.curves[0].values[place] == 164 * MIB


def test_marks_are_where_they_were_and_once_a_step(tmp_path: pathlib.Path) -> None:
    maker = _leaking(tmp_path).mark("save", 100).mark("save", 100).mark("save", 200)
    maker.mark("collection", 150, collected_count=7)
    spans = _picture(maker).spans
    assert [one.step for one in spans if one.what == "checkpoint"] == [100, 200]
    (collection,) = (one for one in spans if one.what == "collection")
    assert collection.says == "7 objects freed"
    assert [(one.what, one.step, one.to_step) for one in spans if one.what == "train"] == [
        ("train", 1.0, 300.0)
    ]


def test_too_many_marks_are_counted_instead(tmp_path: pathlib.Path) -> None:
    maker = _leaking(tmp_path, 1000)
    for step in range(1, 1000):
        maker.mark("collection", step)
    picture = _picture(maker)
    drawn = [one for one in picture.spans if one.what == "collection"]
    assert len(drawn) <= 300
    assert len(drawn) + picture.spans_left_out == 999


def test_the_tree_keeps_as_much_above_as_below(tmp_path: pathlib.Path) -> None:
    exhibit = analyse_with_picture(_leaking(tmp_path).done())
    tree = exhibit.picture.tree
    assert exhibit.picture.tree_at_step == 60
    for place, branch in enumerate(tree):
        assert branch.parent < place
        below = [one.bytes for one in tree if one.parent == place]
        assert not below or sum(below) == pytest.approx(branch.bytes)
    (grows,) = (one for one in tree if one.fingerprint)
    assert grows.name == "local history in fit()"
    assert grows.bytes == 60 * 40 * KIB
    assert grows.fingerprint == exhibit.report.findings[0].fingerprint


def test_the_lines_around_the_keeper_are_shown(tmp_path: pathlib.Path) -> None:
    exhibit = analyse_with_picture(_leaking(tmp_path).done())
    (excerpt,) = exhibit.picture.excerpts
    keeper = exhibit.report.findings[0].keeper
    assert keeper is not None
    assert (excerpt.file, excerpt.line) == (keeper.file, keeper.line) == ("train.py", 12)
    assert excerpt.lines[excerpt.line - excerpt.first_line].strip() == "history.append(x)"


def test_a_worker_has_a_panel_on_the_steps_of_its_parent(tmp_path: pathlib.Path) -> None:
    maker = (
        make.recording(tmp_path)
        .steps(200, in_use=make.flat(), rss=make.flat(300 * MIB))
        .process(2, kind="worker", parent=1, name="worker 0")
        .steps(200, pid=2, source="fetch", in_use=make.line(9 * KIB), rss=make.flat(200 * MIB))
        .ended(201)
    )
    main, worker = _picture(maker).panels
    assert (main.process, worker.process) == ("main", "worker 0")
    assert (worker.steps[0], worker.steps[-1]) == (1.0, 200.0)


def test_layers_end_where_their_rows_end(tmp_path: pathlib.Path) -> None:
    maker = (
        make.recording(tmp_path)
        .steps(200, in_use=make.flat(), rss=make.flat(300 * MIB))
        .process(2, kind="worker", parent=1, name="worker 0")
        .steps(100, pid=2, source="fetch", in_use=make.line(9 * KIB), rss=make.flat(200 * MIB))
        .resident(range(10, 200, 10), make.flat(210 * MIB), pid=2)
        .ended(201)
    )
    _, worker = _picture(maker).panels
    seen = dict(zip(worker.steps, worker.layers[0].values, strict=True))
    assert seen[100.0] is not None
    assert seen[150.0] is None, "seen from outside only: nobody knows what it is made of"


def test_nothing_recorded_draws_nothing(tmp_path: pathlib.Path) -> None:
    assert _picture(make.recording(tmp_path)) == Picture()
