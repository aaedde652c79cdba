"""What most items keep alone is every item's, also while somebody else uses some of it."""

from __future__ import annotations

from typing import Any

import pytest

from leakscope.observe.weigh import weigh

FRAME = 4096
ITEMS = 12


def frame() -> bytearray:
    return bytearray(FRAME)


def weight_of(items: list[Any]) -> float:
    return weigh(items).exclusive_bytes


def test_what_a_step_has_drawn_is_the_buffers_all_the_same() -> None:
    """Breaks when a replay buffer keeps the less, the larger the batch that was drawn from it."""
    buffer = [(number, frame()) for number in range(ITEMS)]
    alone = weight_of(buffer)
    drawn = [state for _, state in buffer[::3]]
    assert weight_of(buffer) == pytest.approx(alone)
    assert len(drawn) == ITEMS // 3


def test_what_most_items_share_with_others_is_not_theirs() -> None:
    buffer = [(number, frame()) for number in range(ITEMS)]
    held = [state for _, state in buffer[: ITEMS - 2]]
    assert weight_of(buffer) < 0.3 * FRAME
    assert len(held) == ITEMS - 2


def test_what_all_of_them_lead_to_is_everybodys() -> None:
    """It looks like the items' own, and there is one of it only."""
    background = frame()
    buffer = [(background, frame()) for _ in range(ITEMS)]
    assert weight_of(buffer) == pytest.approx(FRAME, rel=0.05)


def test_what_the_end_of_a_sample_shares_with_its_neighbour_is_not_lent() -> None:
    """Transitions (state, following), of which each has its frame in common with the next: of six
    in a row five frames are their own."""
    frames = [frame() for _ in range(40)]
    transitions = [(frames[i], frames[i + 1]) for i in range(39)]
    drawn = transitions[3]
    del frames
    six = weight_of(transitions[20:26])
    assert 5 * FRAME < 6 * six < 5.5 * FRAME
    assert weight_of(transitions[:6]) == pytest.approx(six + FRAME / 6, rel=0.05)
    assert len(drawn) == 2


def test_of_very_few_items_nothing_is_concluded() -> None:
    buffer = [(number, frame()) for number in range(3)]
    held = buffer[0][1]
    assert weight_of(buffer) < 0.75 * FRAME
    assert len(held) == FRAME
