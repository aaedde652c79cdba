"""Arrays that are replaced by larger ones, beside others that come and go with the steps."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope.observe.heap import Heap
from leakscope.observe.swelling import Sizes, find_swollen, note_sizes, visible_bytes


def rows(*counts: int) -> list[np.ndarray]:
    return [np.zeros((count, 64)) for count in counts]


def found(now: list[np.ndarray], before: Sizes, steps: int = 10) -> list[tuple[int, int]]:
    return [(one.before, one.now) for one in find_swollen([], now, before, steps)]


def test_a_larger_one_in_place_of_another_is_found() -> None:
    before = note_sizes([], rows(100))
    assert found(rows(160), before) == [(100 * 512, 160 * 512)]


def test_the_same_is_not_found() -> None:
    assert found(rows(100, 300), note_sizes([], rows(100, 300))) == []


def test_one_that_does_not_grow_does_not_hide_one_that_does() -> None:
    before = note_sizes([], rows(100, 12_000))
    before = note_sizes([], rows(160, 12_000), before)
    assert found(rows(220), before) == [(160 * 512, 220 * 512)]
    assert found(rows(220, 12_000), before) == [(160 * 512, 220 * 512)]


def test_a_length_below_the_last_one_is_no_growth() -> None:
    before = note_sizes([], rows(90), note_sizes([], rows(50)))
    assert found(rows(60), before) == []


def test_a_look_that_saw_no_arrays_forgets_nothing() -> None:
    before = note_sizes([], [], note_sizes([], rows(100)))
    assert found(rows(160), before) == [(100 * 512, 160 * 512)]


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
