"""Instances of the program's own classes that become more: a linked list has no length."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from leakscope.model import Moment
from leakscope.observe import inquiry
from leakscope.observe.old_heap import Heap
from leakscope.observe.inquiry import Inquiry
from leakscope.observe.leads import leads_of_populations, our_references
from leakscope.observe.populations import (
    Population,
    carry_on,
    find_growing_populations,
    note_populations,
    with_entry,
)
from leakscope.observe.weighing import weighed

NO_HURRY_NS = 60_000_000_000
"""The heap of a test runner is large, and a search gives up after a while."""


class Node:
    """No weak reference to it is possible."""

    __slots__ = ("payload", "prev")

    def __init__(self, prev: Node | None) -> None:
        self.prev = prev
        self.payload: Any = bytes(2_000)


class Chain:
    def __init__(self) -> None:
        self.head: Node | None = None

    def add(self, nodes: int) -> None:
        for _ in range(nodes):
            self.head = Node(self.head)


def test_more_instances_are_found_with_their_number_at_each_look() -> None:
    nodes: list[Any] = [Node(None) for _ in range(5)]
    before = carry_on({}, note_populations(nodes), 6, 6)
    nodes += [Node(None) for _ in range(20)]
    then = note_populations(nodes)
    nodes += [Node(None) for _ in range(2)]
    (found,) = find_growing_populations(nodes, before, then, step=30)
    assert (found.before, found.then, len(found.members), found.steps) == (5, 25, 27, 24)
    assert 1 < len(found.sample) <= 16


def test_instances_that_come_and_go_are_no_growth() -> None:
    many, few = [Node(None) for _ in range(40)], [Node(None) for _ in range(10)]
    as_few, as_many = note_populations(list(few)), note_populations(list(many))
    before, after = carry_on({}, as_few, 0, 0), carry_on({}, as_many, 0, 0)
    assert find_growing_populations(list(few), before, as_many, step=24) == []
    assert find_growing_populations(list(many), after, as_few, step=24) == []


def test_a_class_that_had_no_instance_before_is_no_growth_yet() -> None:
    nodes: list[Any] = [Node(None) for _ in range(40)]
    assert find_growing_populations(nodes, {}, note_populations(nodes), step=24) == []


def test_a_few_at_each_look_are_told_once_they_are_enough() -> None:
    """Breaks when a class of which 7 come between two looks is forgotten at each of them, or when
    one that has stopped is told of for ever."""
    nodes: list[Any] = [Node(None) for _ in range(5)]
    past = carry_on({}, note_populations(nodes), 0, 0)
    told = []
    for look, more in ((10, 5), (20, 5), (30, 5), (40, 0), (50, 0)):
        nodes += [Node(None) for _ in range(more)]
        then = note_populations(nodes)
        found = find_growing_populations(nodes, past, then, step=look + 2)
        told.append([(one.before, one.steps) for one in found])
        past = carry_on(past, then, look, look + 2)
    assert told == [[], [(5, 22)], [], [], []]


def test_a_linked_list_of_slotted_nodes_is_told_with_what_one_node_keeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inquiry, "_SEARCH_NS", NO_HURRY_NS)
    chain = Chain()
    looks = Inquiry("1-1", lambda: Moment(0, 0))
    chain.add(60)
    looks.first_look(30)
    chain.add(60)
    looks.open_window(60, 4)
    looks.in_window(62)
    chain.add(8)
    # More than anything that grows in the test runner accounts for, so that all leads are asked.
    holdings = looks.second_look(64, 10e6)
    (told,) = [one for one in holdings if one.path[one.grows_at].name == "head"]
    assert looks.explained > 68 * 2_000 / 10e6  # so that no native memory is looked for
    assert told.kind == "chain"
    assert told.counts == ((30, 60), (60, 120), (64, 128))
    assert 2_000 <= told.bytes_each <= 2_300


def test_a_later_look_counts_from_the_opening_of_the_window_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Breaks when what came within the first window is left out: a sixth of an undo history was."""
    monkeypatch.setattr(inquiry, "_SEARCH_NS", NO_HURRY_NS)
    chain = Chain()
    looks = Inquiry("1-1", lambda: Moment(0, 0))
    chain.add(60)
    looks.first_look(30)
    for opened in (60, 90):
        chain.add(60)
        looks.open_window(opened, 4)
        chain.add(8)
        holdings = looks.second_look(opened + 4, 10e6)
    (told,) = [one for one in holdings if one.path[one.grows_at].name == "head"]
    assert told.counts == ((60, 120), (90, 188), (94, 196))


class Edit:
    def __init__(self, before: list[bytes], after: list[bytes]) -> None:
        self.before, self.after = before, after


def test_what_two_of_a_population_hold_is_half_of_each() -> None:
    """An edit keeps what it has made, and what the edit before it had made: one list each."""
    texts = [[bytes(1_000) for _ in range(4)] for _ in range(101)]
    edits = [Edit(before, after) for before, after in pairwise(texts)]
    del texts
    population = Population(0, 0, edits)
    (lead,) = leads_of_populations([population], [])
    each = weighed(lead, frozenset(), our_references([lead])).each
    assert each == pytest.approx(4 * 1_033, rel=0.15)


def test_memory_under_arrays_is_nobody_elses() -> None:
    """It has no object of its own: what the others have that is None is not it."""
    nodes = [Node(None) for _ in range(40)]
    for node in nodes:
        node.payload = np.zeros(512)
    (lead,) = leads_of_populations([Population(0, 0, nodes)], [])
    assert weighed(lead, frozenset(), our_references([lead])).parts["arrays"] > 4_096


def test_only_classes_of_the_program_are_counted() -> None:
    names = {type(one).__name__ for one in Heap().instances}
    assert "Chain" not in names  # none lives now
    chain = Chain()
    assert any(one is chain for one in Heap().instances)


class Latest:
    """Has one, and leads to no other."""

    def __init__(self, node: Node) -> None:
        self.node = node


def test_the_head_of_a_chain_is_its_entry_and_the_latest_of_a_list_is_none() -> None:
    """Breaks when `self.current`, one of a thousand that are in a queue somewhere, is told to keep
    them all; or when the root of a tree is not told, for it is far from the others."""
    chain = Chain()
    chain.add(200)
    nodes = [one for one in Heap().instances if type(one) is Node]
    found = with_entry(Population(0, 0, nodes), Heap().instances)
    assert found.entry is chain.head
    loose = [Node(None) for _ in range(200)]
    latest = Latest(loose[-1])
    alone = with_entry(Population(0, 0, list(loose)), [*loose, latest])
    assert alone.entry is None
