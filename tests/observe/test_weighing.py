"""What several items, or several containers, keep together is found where the growth is open."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any

import numpy as np
import pytest

from leakscope.observe.containers import Grower
from leakscope.observe.devices import NOTHING_GIVEN
from leakscope.observe.leads import Lead, leads_of_containers, our_references
from leakscope.observe.weighing import Weighed, take_kin, weigh_all, weigh_more

BATCH = 16
ROW_BYTES = 4096


def grown(it: Any, *, before: int, base: type | None = None) -> Grower:
    base = base or type(it)
    return Grower(it, base, before, len(it), len(it))


def weighed(leads: list[Lead], *, more: bool) -> list[Weighed]:
    ours = our_references(leads)
    growing = frozenset(id(lead.it) for lead in leads)
    found = weigh_all(leads, growing, ours, NOTHING_GIVEN)
    return weigh_more(found, growing, ours, NOTHING_GIVEN) if more else found


def test_views_of_one_batch_keep_it_together() -> None:
    """A batch has sixteen results; the newest, which is not asked, is one of the last of them."""
    results = []
    for _ in range(20):
        batch = np.zeros((BATCH, ROW_BYTES), np.uint8)
        results += [batch[place] for place in range(BATCH)]
    del batch
    leads = leads_of_containers([grown(results, before=0)])
    (few,) = weighed(leads, more=False)
    (many,) = weighed(leads, more=True)
    assert few.each < ROW_BYTES / 2
    assert many.each == pytest.approx(ROW_BYTES, rel=0.15)


class Recorder:
    """Is told by the hooks of several layers."""

    def __init__(self) -> None:
        self.seen = np.zeros(60_000, np.uint8)

    def record(self, name: str) -> None:
        """Keeps what it sees."""


def test_hooks_of_one_recorder_keep_it_together() -> None:
    tables: list[dict[int, Any]] = [{} for _ in range(3)]
    for number in range(6):
        recorder = Recorder()
        for table in tables:
            table[number] = partial(recorder.record, "layer")
    del recorder
    leads = leads_of_containers([grown(table, before=1) for table in tables])
    assert all(one.each < 1_000 for one in weighed(leads, more=False))
    first, *others = weighed(leads, more=True)
    assert first.each == pytest.approx(20_000, rel=0.1)
    assert len(take_kin(first, others, is_item=False)) == 2
    assert not others


def test_a_table_has_what_a_ring_will_let_go() -> None:
    ring: deque[Any] = deque(maxlen=250)
    table: dict[int, Any] = {}
    for number in range(100):
        item = np.zeros(ROW_BYTES, np.uint8)
        ring.append(item)
        table[number] = [0.5, item]
    del item
    leads = leads_of_containers([grown(ring, before=50), grown(table, before=50)])
    of_ring, of_table = sorted(weighed(leads, more=False), key=lambda one: not one.lead.bound)
    assert of_ring.each == pytest.approx(ROW_BYTES, rel=0.2)
    assert of_table.each == pytest.approx(ROW_BYTES, rel=0.2)


@pytest.mark.parametrize(
    ("before", "then", "is_doubtful"), [(0, 4, True), (0, 3, False), (1, 4, False)]
)
def test_what_was_empty_and_does_not_grow_may_be_another(
    before: int, then: int, is_doubtful: bool
) -> None:
    lead = Lead("container", [1, 2, 3, 4], before, 4, [], [], then=then)
    assert lead.is_doubtful is is_doubtful
