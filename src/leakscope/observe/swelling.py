"""Tensors and arrays that are replaced by larger ones: `bank = torch.cat((bank, keys))`; and lists
of them that are replaced by longer ones: `preds = copy.deepcopy(preds) + [batch]`.

Each is a new object, so they are compared by what they look like: arrays apart from their first
dimension, lists by their first item.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from leakscope.observe.autograd import storage_of, without_torch_functions

_MOST_TENSORS = 20_000
_FEWEST_ROWS_A_STEP = 0.3
_SMALLEST_BYTES_A_STEP = 256
_MOST_SWOLLEN = 4
_MOST_ROWS = 32
_FEWEST_ITEMS, _MOST_LISTS = 4, 5_000
"""Of lists: a batch is often two or three tensors, and is a new list in every step. Choices."""
_OFTEN = 2

Looks = tuple[str, str, tuple[int, ...]]
"""Kind, type of number and shape without the first dimension: a row of it has so many bytes. Of a
list, those of its first item, which is a row."""

Measured = tuple[Looks, int, int, Any]
"""One of them: what it looks like, its rows, its bytes, and itself."""


class Sizes(NamedTuple):
    """Rows of all arrays, by what they look like."""

    last: dict[Looks, frozenset[int]]
    """At the last look that saw one."""
    met: dict[Looks, dict[int, int]]
    """At how many looks there was one with so many rows. Twice the same: it does not grow, and a
    larger one that comes and goes with the steps must not hide one that grows."""


class Swollen(NamedTuple):
    """An array or a list that has become larger. Lives within one look only."""

    it: Any
    before: int
    now: int
    """Bytes."""
    rows_before: int
    rows_now: int


def note_sizes(measured: Iterable[Measured], before: Sizes | None = None) -> Sizes:
    rows: dict[Looks, set[int]] = {}
    for looks, count, _, _ in measured:
        rows.setdefault(looks, set()).add(count)
    # What is not there keeps its entry: not every look goes through all arrays.
    last, met = (dict(before.last), dict(before.met)) if before is not None else ({}, {})
    for looks, counts in rows.items():
        known = met.get(looks, {})
        largest = sorted(counts)[-_MOST_ROWS:]
        last[looks] = frozenset(counts)
        met[looks] = {**known, **{count: known.get(count, 0) + 1 for count in largest}}
    return Sizes(last, met)


def visible_bytes(tensors: list[Any], arrays: list[Any]) -> int:
    """Of all tensors and arrays that Python has, each memory once."""
    with without_torch_functions():
        storages = dict(
            found for one in tensors[:_MOST_TENSORS] if (found := storage_of(one)) is not None
        )
    numpy = sys.modules.get("numpy")
    kind = numpy.ndarray.__dict__ if numpy is not None else {}
    own = (one for one in arrays if kind["base"].__get__(one) is None)
    return sum(storages.values()) + sum(int(kind["nbytes"].__get__(one)) for one in own)


def find_swollen(measured: Iterable[Measured], before: Sizes, steps: int) -> list[Swollen]:
    """Those that gained rows with the steps, the largest gain first: of what looks alike, the
    largest that is new beside the largest that has gone."""
    now: dict[Looks, set[int]] = {}
    largest: dict[Looks, tuple[int, int, Any]] = {}
    for looks, rows, size, it in measured:
        now.setdefault(looks, set()).add(rows)
        is_new = rows not in before.met.get(looks, {})
        if is_new and rows > largest.get(looks, (-1, 0, None))[0]:
            largest[looks] = (rows, size, it)
    swollen = []
    for looks, (rows, size, it) in largest.items():
        met = before.met.get(looks, {})
        gone = [one for one in before.last.get(looks, ()) if one not in now[looks]]
        then_rows = max((one for one in gone if met.get(one, 0) < _OFTEN), default=rows)
        then = size // max(rows, 1) * then_rows
        has_rows = rows - then_rows >= max(_FEWEST_ROWS_A_STEP * steps, 2)
        if has_rows and size - then >= _SMALLEST_BYTES_A_STEP * steps:
            swollen.append(Swollen(it, then, size, then_rows, rows))
    swollen.sort(key=lambda one: one.before - one.now)
    return swollen[:_MOST_SWOLLEN]


def measure_arrays(tensors: list[Any], arrays: list[Any]) -> Iterator[Measured]:
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


def measure_lists(lists: list[list[Any]]) -> Iterator[Measured]:
    """A metric of torchmetrics that is called, not updated, copies all of its state in every step:
    neither the list nor a tensor in it is there at the next look. Where the items stay, they are
    found among what was born in the window."""
    numpy = sys.modules.get("numpy")
    kind = numpy.ndarray.__dict__ if numpy is not None else {}
    with without_torch_functions():
        for one in lists[:_MOST_LISTS]:
            length = list.__len__(one)
            if length < _FEWEST_ITEMS:
                continue
            first = list.__getitem__(one, 0)
            if numpy is not None and type(first) is numpy.ndarray:
                shape, size = kind["shape"].__get__(first), kind["nbytes"].__get__(first)
                looks = ("list of ndarray", str(kind["dtype"].__get__(first)), tuple(shape))
            else:
                size = first.numel() * first.element_size()
                looks = ("list of Tensor", str(first.dtype), tuple(first.shape))
            yield looks, length, length * size, one
