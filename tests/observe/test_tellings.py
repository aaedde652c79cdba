"""The path to what grows is the program's, never our own way to it."""

from __future__ import annotations

import time

from leakscope.observe.leads import Lead
from leakscope.observe.tellings import path_to

_LATER_NS = 10**10


class Result:
    """Something that lives on."""


def test_what_we_search_through_holds_nothing() -> None:
    """Breaks when the list of what is to be searched for is found as the holder."""
    items = [Result() for _ in range(3)]
    lead = Lead("chain", items[0], 0, 3, items, [])
    path = path_to(lead, {id(items), id(lead)}, time.monotonic_ns() + _LATER_NS)
    assert not any("list" in link.type for link in path)
