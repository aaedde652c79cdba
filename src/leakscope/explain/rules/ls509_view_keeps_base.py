"""LS509: small views are kept, and each keeps the whole of what it was cut from."""

import re
from itertools import pairwise
from math import prod

from leakscope.explain.rule import Case, Weight, rule
from leakscope.model import WHOLE

LARGER = 3.0
"""A base has to be so many times its view: less is a reshaped array, or a tensor and its
gradient, and a copy would save nothing."""

_FACE = 1024.0
"""Bytes of a tensor without its data, some 400 to 900; below, they are what is kept."""

_MOST = 0.3
"""Of what one item keeps, as LS101 asks of a graph: a pair of a view and its loss has other parts
too."""

_SHAPE = re.compile(r"\[([\d, ]*)\] (?:bool|[a-z]*?(\d+))\b")
"""As arrays and tensors are described: `Tensor [3, 32, 32] float32`."""


@rule(
    "LS509",
    weight=Weight.ITEM,
    fix="keep a copy of the part (`.copy()`, `.clone()`): a view keeps the whole of "
    "what it was cut from",
)
def view_keeps_base(case: Case) -> bool:
    """Small views are kept, and each keeps the whole of what it was cut from.

    ## Why it leaks
    A slice of an array or tensor is a view: it keeps the whole of what it was cut from.

    ## Example
    ```python
    clips.append(wave[:16000])  # keeps the whole wave
    ```

    ## Use instead
    `wave[:16000].copy()`, for a tensor `.clone()`.

    ## Not this rule when
    The view's base is not the largest part of what one item keeps, or is less than three times
    the view, as after `reshape`: LS501. When the view carries a graph that costs more than 30 %:
    LS101.
    """
    based = [link.via in (".base", "._base") for link in case.below]
    if True in based:
        place = based.index(True)
        view = case.below[place - 1].type if place else case.holding.item
        own = _bytes_of(view)
        return own is None or case.holding.bytes_each > LARGER * own
    return _keeps_whole(case)


def _keeps_whole(case: Case) -> bool:
    """A tensor shows a small part of its memory, which is most of what one item keeps."""
    for view, whole in pairwise(case.below):
        if whole.via == WHOLE:
            size, own = _bytes_of(whole.type) or 0.0, _bytes_of(view.type) or 0.0
            return size > max(LARGER * max(own, _FACE), _MOST * case.holding.bytes_each)
    return False


def _bytes_of(described: str) -> float | None:
    """The data of an array or tensor of that description; None if it says no shape."""
    found = _SHAPE.search(described)
    if found is None:
        return None
    shape = [int(size) for size in found[1].split(",") if size.strip()]
    return prod(shape) * (int(found[2]) / 8 if found[2] else 1)
