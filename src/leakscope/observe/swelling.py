"""Tensors and arrays that are replaced by larger ones: `bank = torch.cat((bank, keys))`.

Each is a new object, so they are compared by what they look like apart from their first dimension,
the largest of each kind with the largest before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from leakscope.observe.autograd import without_torch_functions

_MOST_TENSORS = 20_000
_FEWEST_ROWS_A_STEP = 0.3
_SMALLEST_BYTES_A_STEP = 256
_MOST_SWOLLEN = 4

Looks = tuple[str, str, tuple[int, ...]]


class Sizes(NamedTuple):
    """Rows and bytes of the largest of each look."""

    largest: dict[Looks, tuple[int, int]]


class Swollen(NamedTuple):
    """An array that has become larger. Lives within one look only."""

    it: Any
    before: int
    now: int


def note_sizes(tensors: list[Any], arrays: list[Any]) -> Sizes:
    largest: dict[Looks, tuple[int, int]] = {}
    for looks, rows, size, _ in _measured(tensors, arrays):
        if rows > largest.get(looks, (-1, 0))[0]:
            largest[looks] = (rows, size)
    return Sizes(largest)


def find_swollen(tensors: list[Any], arrays: list[Any], before: Sizes, steps: int) -> list[Swollen]:
    """Those that gained rows with the steps, the largest gain first."""
    largest: dict[Looks, tuple[int, int, Any]] = {}
    for looks, rows, size, it in _measured(tensors, arrays):
        if rows > largest.get(looks, (-1, 0, None))[0]:
            largest[looks] = (rows, size, it)
    swollen = []
    for looks, (rows, size, it) in largest.items():
        then_rows, then = before.largest.get(looks, (rows, size))
        has_rows = rows - then_rows >= max(_FEWEST_ROWS_A_STEP * steps, 2)
        if has_rows and size - then >= _SMALLEST_BYTES_A_STEP * steps:
            swollen.append(Swollen(it, then, size))
    swollen.sort(key=lambda one: one.before - one.now)
    return swollen[:_MOST_SWOLLEN]


def _measured(tensors: list[Any], arrays: list[Any]) -> Iterator[tuple[Looks, int, int, Any]]:
    if tensors:
        with without_torch_functions():
            for tensor in tensors[:_MOST_TENSORS]:
                shape = tuple(tensor.shape)
                if shape and tensor._base is None:
                    size = tensor.numel() * tensor.element_size()
                    yield ("Tensor", str(tensor.dtype), shape[1:]), shape[0], size, tensor
    numpy = sys.modules.get("numpy")
    if numpy is not None and arrays:
        kind = numpy.ndarray.__dict__
        for array in arrays:
            shape = kind["shape"].__get__(array)
            if shape and kind["base"].__get__(array) is None:
                looks = ("ndarray", str(kind["dtype"].__get__(array)), shape[1:])
                yield looks, shape[0], kind["nbytes"].__get__(array), array
