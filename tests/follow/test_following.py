"""A growing recording: what is new is read once, and judged at a pace that costs little."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import make_report
from leakscope.follow.follower import Follower
from leakscope.follow.history import MOST_POINTS, History
from leakscope.follow.pace import Pace
from leakscope.follow.plot import plot
from leakscope.model import Report
from leakscope.record.reader import Reader, Recording
from make import KIB, MIB, flat, line, recording


def test_a_block_is_read_once_and_the_latest_values_are_known(tmp_path: Path) -> None:
    """Breaks when a look reads old rows again, or shows values of an older source."""
    made = recording(tmp_path).steps(10, source="forward", in_use=flat(7 * MIB))
    reader, history = Reader(str(tmp_path)), History()
    history.follow(reader.poll())
    made.steps(20, first=11, source="forward", in_use=line(KIB))
    history.follow(reader.poll())
    history.follow(reader.poll())
    track = history.main(reader.recording)
    assert track is not None
    assert [point.at for point in track.points] == list(range(1, 21))
    assert history.last("1-7", "in_use_bytes") == 100 * MIB + 20 * KIB


def test_a_long_run_takes_no_more_room_and_keeps_its_peak(tmp_path: Path) -> None:
    """Breaks when a million rows become a million points, or a spike is thinned out."""

    def spiky(step: int) -> float:
        return 900.0 * MIB if step == 12_345 else 100.0 * MIB

    made = recording(tmp_path)
    for first in range(1, 20_000, 500):
        made.steps(first + 499, first=first, in_use=spiky)
    history = History()
    history.follow(Reader(str(tmp_path)).poll())
    (track,) = history.tracks.values()
    assert track.rows == 20_000
    assert len(track.points) <= MOST_POINTS
    highest = max(track.points, key=lambda point: point.in_use or 0)
    assert highest.in_use == 900 * MIB
    assert highest.at <= 12_345 < highest.at + 32


def test_steps_are_drawn_rather_than_the_clock(tmp_path: Path) -> None:
    recording(tmp_path).resident(range(100), flat()).steps(5, in_use=flat())
    reader, history = Reader(str(tmp_path)), History()
    history.follow(reader.poll())
    track = history.main(reader.recording)
    assert track is not None
    assert track.is_by_steps


@pytest.mark.parametrize(
    ("age_s", "cost_s", "pause_s"), [(1, 0.01, 2), (10, 0.5, 15), (600, 0.1, 30), (1e6, 1, 60)]
)
def test_judging_again_waits_for_its_cost_and_its_age(
    age_s: float, cost_s: float, pause_s: float
) -> None:
    pace = Pace()
    assert pace.is_due(0.0)
    pace.judged(100.0, cost_s=cost_s, age_s=age_s)
    assert not pace.is_due(100.0 + pause_s - 0.01)
    assert pace.is_due(100.0 + pause_s)


class _Judge:
    def __init__(self) -> None:
        self.times = 0

    def __call__(self, recording: Recording) -> Report:
        self.times += 1
        return make_report.growing()


def test_a_run_is_judged_to_its_end_and_then_left_alone(tmp_path: Path) -> None:
    """Breaks when the last rows are never judged, or a finished run is judged for ever."""
    judge = _Judge()
    made = recording(tmp_path).steps(50, in_use=line(KIB))
    follower = Follower(str(tmp_path), judge)
    assert not follower.look().is_over
    made.steps(80, first=51, in_use=line(KIB))
    assert not follower.look().is_over  # not due yet: judged once so far
    assert judge.times == 1
    made.ended(80)
    assert follower.look().is_over
    assert judge.times == 2
    assert follower.look().state == "ended with 0"
    assert follower.is_final
    assert judge.times == 2


def test_what_fails_is_said_and_the_rest_is_shown(tmp_path: Path) -> None:
    def fail(recording: Recording) -> Report:
        raise ValueError("no\nnumbers")

    recording(tmp_path / "run").steps(50, in_use=line(KIB))
    follower = Follower(str(tmp_path / "run"), fail)
    view = follower.look()
    assert view.trouble == "this run could not be judged: ValueError: no\nnumbers"
    assert len(view.points) == 50
    shutil.rmtree(tmp_path / "run")
    view = follower.look()
    assert "cannot be read: No such file" in view.trouble
    assert len(view.points) == 50


def test_the_tree_has_parents_before_children(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.process(3, kind="child", parent=2, followed=False).process(2, kind="child", parent=1)
    made.process(4, kind="helper", parent=1).resident([1, 2], flat(5 * MIB), pid=3)
    made.ended(9, pid=4, code=None, signal=9)
    members = Follower(str(tmp_path), _Judge()).look().members
    assert [(one.pid, one.depth) for one in members] == [(1, 0), (2, 1), (3, 2), (4, 1)]
    assert members[2].resident == 5 * MIB
    assert not members[2].is_followed
    assert members[3].end == "killed by signal 9 (SIGKILL)"


_sizes = st.floats(0, 1e15)
_curves = st.lists(st.tuples(st.integers(0, 10**9), _sizes), min_size=1, max_size=60).map(
    lambda pairs: [(float(at), size) for at, size in sorted(pairs)]
)


@given(_curves, st.integers(20, 200), st.integers(1, 20))
def test_a_curve_keeps_to_its_cells(
    values: list[tuple[float, float]], width: int, height: int
) -> None:
    rows = plot(values, width, height)
    assert len(rows) == height
    assert {len(row) for row in rows} == {width}
    assert any(character > "\u2800" for row in rows for character in row)


def test_a_rise_rises_and_a_flat_line_stays_flat() -> None:
    rising = plot([(float(x), 1e6 + 1e4 * x) for x in range(200)], 40, 4)
    assert rising[0].rstrip("\u2800").endswith("⠉") or rising[0][-1] > "\u2800"
    assert rising[-1][9] > "\u2800"
    assert rising[0][9] == "\u2800"
    level = plot([(float(x), 1e8 + (x % 2) * 10) for x in range(200)], 40, 5)
    drawn = [row for row in level if any(c > "\u2800" for c in row)]
    assert len(drawn) == 1
