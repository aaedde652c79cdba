"""The path to what grows is the program's, never our own way to it."""

from __future__ import annotations

import time

import pytest

from leakscope.model import Link
from leakscope.observe.leads import Lead
from leakscope.observe.tellings import can_pile_up, path_to

_LATER_NS = 10**10


class Result:
    """Something that lives on."""


def test_what_we_search_through_holds_nothing() -> None:
    """Breaks when the list of what is to be searched for is found as the holder."""
    items = [Result() for _ in range(3)]
    lead = Lead("chain", items[0], 0, 3, items, [])
    path = path_to(lead, {id(items), id(lead)}, time.monotonic_ns() + _LATER_NS)
    assert not any("list" in link.type for link in path)


@pytest.mark.parametrize(
    ("kind", "now", "is_told"), [("partial", 4, True), ("partial", 1, False), ("Tensor", 4, False)]
)
def test_callables_that_native_code_got_at_every_step_pile_up(
    kind: str, now: int, is_told: bool
) -> None:
    """Breaks when `atexit.register` in a loop is called native memory that no object holds, or
    tensors on their way through the backward pass are called kept."""
    lead = Lead("chain", None, 0, now, [], [], steps=4)
    path = (Link("held by native code", kind, "native"),)
    assert can_pile_up(lead, path) is is_told
    assert not can_pile_up(lead, (*path, Link(".args", "tuple")))


@pytest.mark.parametrize(("then", "can"), [(4, False), (3, True)])
def test_attributes_that_came_all_at_once_are_those_of_a_new_object(then: int, can: bool) -> None:
    """Breaks when the iterator of a new epoch, at the address of the last one's, is told as a table
    that grows."""
    lead = Lead("container", {}, 0, 4, [], [], then=then)
    path = (
        Link("module app", "module", "module"),
        Link(".__dict__", "dict", "attribute", "__dict__"),
    )
    assert can_pile_up(lead, path) is can
