"""The parts of a verdict, one by one."""

from __future__ import annotations

import numpy as np
import pytest
from made import MIB, noise, saw, series

from leakscope.judge import judge
from leakscope.judge.drift import Objection, drift_of
from leakscope.judge.excursions import ground_of
from leakscope.judge.jumps import jumps_of, partners_of, sharp_jumps, teeth_of
from leakscope.judge.levels import MOST_LEVELS, Levels, levels_of
from leakscope.judge.rivals import contest, slope_of
from leakscope.judge.staircase import staircase_of
from leakscope.judge.track import MOST_POINTS, cleared_of, floors_of, track_of
from leakscope.model import Outcome

N = 240
AT = np.arange(N, dtype=float)


def test_long_series_are_reduced_to_their_low_levels() -> None:
    spiky = np.zeros(100_000)
    spiky[::7] = 50 * MIB
    track = track_of(series(spiky))
    assert len(track.y) <= MOST_POINTS
    assert track.y.max() == 0


def test_floors_count_only_where_collections_free_something() -> None:
    teeth, floors = saw(N, 20, 30 * MIB)
    assert floors_of(series(teeth, floors=floors)) is not None
    assert floors_of(series(0.1 * MIB * AT, floors=floors)) is None
    assert floors_of(series(teeth, floors=floors[:4])) is None


@pytest.mark.parametrize("knee", [60, 200])
def test_neither_a_line_nor_its_plateau_is_a_row_of_jumps(knee: int) -> None:
    assert len(sharp_jumps(AT, np.minimum(AT, knee), 0.5)) <= 2
    assert len(sharp_jumps(AT, np.maximum(AT, knee), 0.5)) <= 2


def test_a_rise_and_its_return_are_partners() -> None:
    assert partners_of([50.0, 3.0, -48.0, -20.0]) == [2, -1, 0, -1]


def test_jumps_have_their_place_and_size() -> None:
    at, sizes = jumps_of(AT, 0.1 * AT + 40 * (AT >= 70) - 40 * (AT >= 150), 5.0)
    assert at == [70, 150]
    assert sizes == pytest.approx([40, -40], abs=0.2)


def test_teeth_are_drops_that_undo_what_rose_before() -> None:
    teeth, _ = saw(N, 40, 80.0)
    assert [tooth.at for tooth in teeth_of(AT, teeth, 10.0, 0.0)] == [40, 80, 120, 160, 200]
    spikes = np.where(AT % 40 < 3, 80.0, 0.0)
    assert teeth_of(AT, spikes, 10.0, 0.0) == []


def test_what_comes_and_goes_is_not_ground() -> None:
    ground = ground_of(track_of(series(300 * MIB * (AT % 25 < 4) + noise(N))))
    assert ground.y.max() < 5 * MIB
    assert ground.passing_size == pytest.approx(300 * MIB, rel=0.05)
    dipping = ground_of(track_of(series(500 * MIB - 300 * MIB * (AT % 25 > 20) + noise(N))))
    assert dipping.y.min() > 480 * MIB


def test_levels_never_lie_across_a_jump() -> None:
    ground = ground_of(track_of(series(90 * MIB * (AT >= 101) + noise(N))))
    levels = levels_of(ground, 0.0)
    assert len(levels.x) <= MOST_LEVELS + 2
    assert not np.any((levels.y > 20 * MIB) & (levels.y < 70 * MIB))
    assert len(levels.stretches) == 1


def levels(y: np.ndarray) -> Levels:
    return Levels(np.arange(len(y), dtype=float), y, (), 0.0)


@pytest.mark.parametrize(
    ("shape", "winner"),
    [
        (np.zeros(40), "constant"),
        (30.0 * (np.arange(40) > 20), "constant"),
        (60 * (1 - np.exp(-np.arange(40) / 8)), "saturating"),
        (np.minimum(2.0 * np.arange(40), 40), "capped"),
    ],
)
def test_the_rival_that_made_the_levels_wins(shape: np.ndarray, winner: str) -> None:
    found = contest(levels(shape + noise(40, sd=1.0)))
    assert found.harmless.name == winner
    assert found.lead < 6


def test_a_line_beats_all_rivals() -> None:
    found = contest(levels(0.8 * np.arange(40) + noise(40, sd=1.0)))
    assert found.lead > 20
    assert found.slope == pytest.approx(0.8, abs=0.1)


def test_noise_that_remembers_widens_the_error() -> None:
    y = noise(40, sd=1.0)
    assert slope_of(levels(y), 0.9)[1] > 1.5 * slope_of(levels(y), 0.0)[1]


def test_records_of_a_high_water_mark_are_no_staircase() -> None:
    records = [40 * MIB * (at <= AT) / (k + 1) for k, at in enumerate([3, 9, 25, 60, 160])]
    rises = np.sum(records, axis=0)
    assert staircase_of(ground_of(track_of(series(rises)))) is None
    even = 4 * MIB * np.floor(AT / 25)
    stairs = staircase_of(ground_of(track_of(series(even))))
    assert stairs is not None
    assert stairs.size == pytest.approx(4 * MIB)


def test_a_saw_tooth_is_objected_to_as_given_back() -> None:
    teeth, _ = saw(N, 60, 200 * MIB)
    assert drift_of(track_of(series(teeth + noise(N)))).objection is Objection.GIVEN_BACK


def test_garbage_since_the_last_collection_is_taken_out() -> None:
    teeth, floors = saw(N, 30, 60 * MIB)
    track = cleared_of(series(0.05 * MIB * AT + teeth, floors=floors))
    assert track is not None
    assert track.is_cleared
    assert np.ptp(np.diff(track.y)) < 0.1 * MIB
    uneven = np.where(AT % 30 == 29, 60 * MIB * (AT % 60 > 29), 0.0)
    assert cleared_of(series(uneven, floors=floors)) is None
    assert cleared_of(series(teeth, floors=floors[:5])) is None


def test_teeth_that_grow_on_flat_floors_are_not_growth() -> None:
    teeth, floors = saw(N, 15, 60 * MIB)
    growing = teeth * np.linspace(1, 4, N)
    assert judge(series(growing + noise(N), floors=floors)).outcome is not Outcome.GROWING


def test_an_evaluation_on_the_floors_does_not_hide_growth() -> None:
    teeth, floors = saw(N, 25, 60 * MIB)
    evaluation = 200 * MIB * (AT % 40 < 9)
    verdict = judge(series(0.15 * MIB * AT + teeth + evaluation + noise(N), floors=floors))
    assert verdict.outcome is Outcome.GROWING
    assert verdict.bytes_per_step.low < 0.15 * MIB < verdict.bytes_per_step.high
    still = judge(series(teeth + evaluation + noise(N), floors=floors))
    assert still.outcome is not Outcome.GROWING


def test_a_jump_in_two_stages_is_counted_once() -> None:
    at, sizes = jumps_of(AT, 10.0 * (AT >= 70) + 30.0 * (AT >= 71), 5.0)
    assert at == [71]
    assert sizes == pytest.approx([40], abs=0.2)


def test_a_drop_that_gives_back_a_buffer_is_no_tooth() -> None:
    epochs = np.where(AT % 80 >= 40, 50.0, 0.0) + np.where(AT % 40 < 3, 200.0, 0.0)
    teeth = teeth_of(AT, 0.4 * AT + epochs, 10.0, 0.0)
    assert sum(tooth.undone for tooth in teeth) < 0.1 * 0.4 * N


def test_a_saw_tooth_of_two_troughs_is_steady_if_its_peaks_are_level() -> None:
    teeth, _ = saw(N, 80, 80 * MIB)
    assert judge(series(teeth, is_exact=True)).outcome is Outcome.STEADY
    rising = teeth + 0.15 * MIB * AT
    assert judge(series(rising, is_exact=True)).outcome is not Outcome.STEADY


def test_five_even_rises_are_a_staircase_by_themselves() -> None:
    even = staircase_of(ground_of(track_of(series(4 * MIB * np.floor(AT / 30)))))
    assert even is not None
    assert even.is_even
    ended = 4 * MIB * np.minimum(np.floor(AT / 20), 6)
    stairs = staircase_of(ground_of(track_of(series(ended))))
    assert stairs is None or not stairs.is_even
