"""Arrays that are replaced by larger ones, beside others that come and go with the steps."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope.observe.old_heap import Heap
from leakscope.observe.swelling import (
    Sizes,
    find_swollen,
    measure_arrays,
    measure_lists,
    note_sizes,
    visible_bytes,
)


def rows(*counts: int) -> list[np.ndarray]:
    return [np.zeros((count, 64)) for count in counts]


def found(now: list[np.ndarray], before: Sizes, steps: int = 10) -> list[tuple[int, int]]:
    return [(one.before, one.now) for one in find_swollen(measure_arrays([], now), before, steps)]


def test_a_larger_one_in_place_of_another_is_found() -> None:
    before = note_sizes(measure_arrays([], rows(100)))
    assert found(rows(160), before) == [(100 * 512, 160 * 512)]


def test_the_same_is_not_found() -> None:
    assert found(rows(100, 300), note_sizes(measure_arrays([], rows(100, 300)))) == []


def test_one_that_does_not_grow_does_not_hide_one_that_does() -> None:
    before = note_sizes(measure_arrays([], rows(100, 12_000)))
    before = note_sizes(measure_arrays([], rows(160, 12_000)), before)
    assert found(rows(220), before) == [(160 * 512, 220 * 512)]
    assert found(rows(220, 12_000), before) == [(160 * 512, 220 * 512)]


def test_a_length_below_the_last_one_is_no_growth() -> None:
    before = note_sizes(measure_arrays([], rows(90)), note_sizes(measure_arrays([], rows(50))))
    assert found(rows(60), before) == []


def test_a_look_that_saw_no_arrays_forgets_nothing() -> None:
    before = note_sizes([], note_sizes(measure_arrays([], rows(100))))
    assert found(rows(160), before) == [(100 * 512, 160 * 512)]


def lists(*counts: int) -> list[list[np.ndarray]]:
    return [[np.zeros(64) for _ in range(count)] for count in counts]


def longer(now: list[list[np.ndarray]], before: Sizes, steps: int = 10) -> list[tuple[int, int]]:
    swollen = find_swollen(measure_lists(now), before, steps)
    return [(one.rows_before, one.rows_now) for one in swollen]


def test_a_longer_list_in_place_of_another_is_found() -> None:
    """Breaks where a metric copies its state in every call: no list and no array is there twice."""
    before = note_sizes(measure_lists(lists(20)))
    assert longer(lists(30), before) == [(20, 30)]


def test_lists_of_one_length_and_shorter_ones_are_no_growth() -> None:
    before = note_sizes(measure_lists(lists(20, 7)))
    assert longer(lists(20, 7), before) == []
    assert longer(lists(12), before) == []


def test_a_list_is_not_taken_for_an_array_of_the_same_looks() -> None:
    before = note_sizes(measure_arrays([], [np.zeros((20, 64))]))
    assert longer(lists(30), before) == []


def test_lists_of_arrays_are_found_among_all_there_are() -> None:
    """By their first item; those of other things, and empty ones, are not measured."""
    of_arrays, others, empty = lists(5)[0], [1, np.zeros(3)], list[int]()
    seen = {id(one) for one in Heap().lists_of_arrays}
    assert id(of_arrays) in seen
    assert not seen & {id(others), id(empty)}


class Recorder:
    def __init__(self) -> None:
        self.trace = np.zeros((100, 64))


def test_an_array_is_seen_in_an_instance_whose_dict_was_asked_for() -> None:
    """From then on the instance holds a dict, which the collector does not track."""
    recorder = Recorder()
    assert any(one is recorder.trace for one in Heap().arrays)
    assert recorder.__dict__
    assert any(one is recorder.trace for one in Heap().arrays)
    assert any(one is recorder.trace for one in Heap(is_deep=True).arrays)


def test_each_memory_is_seen_once() -> None:
    """Breaks when ten views of one array are ten arrays, and hide that native memory grows."""
    array = np.zeros((100, 64))
    assert visible_bytes([], [array, *array]) == array.nbytes
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    tensor = torch.zeros(100, 64)
    assert visible_bytes([tensor, *tensor.unbind()], [array]) == array.nbytes + 25_600
