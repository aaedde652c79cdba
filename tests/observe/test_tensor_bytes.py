"""A kept tensor weighs what malloc gave for it, however it was made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from leakscope.observe.native_heap import open_native_heap
from leakscope.observe.weigh import weigh

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

NUMBERS = [0.5] * 100
MAKERS: dict[str, Callable[[], Any]] = {
    "tensor": lambda: torch.tensor(NUMBERS),
    "one number": lambda: torch.tensor(0.5),
    "zeros": lambda: torch.zeros(100),
    "parameter": lambda: torch.nn.Parameter(torch.zeros(100)),
    "detached": lambda: torch.nn.Parameter(torch.zeros(100)).detach().clone(),
    "generator": torch.Generator,
}


@pytest.mark.parametrize("made", MAKERS)
def test_as_malloc_has_it(made: str) -> None:
    """Breaks when torch's layout changes, or when an autograd part that no method tells of is left
    out: it is a third of a kept number."""
    read = open_native_heap().read
    if read is None:
        pytest.skip("this allocator keeps no counters")
    make = MAKERS[made]
    kept = [make() for _ in range(500)] + [None] * 500
    before = read()[0]
    for number in range(500, 1000):
        kept[number] = make()
    each = (read()[0] - before) / 500
    weight = weigh(kept[700:706])
    assert weight.exclusive_bytes - weight.in_blocks.bytes == pytest.approx(each, rel=0.1)


def test_tensors_without_a_storage_are_no_matter() -> None:
    rows = torch.eye(4).to_sparse()
    assert weigh([rows]).gap is None
