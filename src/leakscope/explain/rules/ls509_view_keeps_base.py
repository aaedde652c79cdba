"""LS509: small views are kept, and each keeps the whole of what it was cut from."""

import re
from math import prod

from leakscope.explain.rule import Case, Weight, rule

LARGER = 3.0
"""A base has to be so many times its view: less is a reshaped array, or a tensor and its
gradient, and a copy would save nothing."""

_FACE = 1024.0
"""Bytes of a tensor without its data, some 400 to 900; below, they are what is kept."""

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
    # A tensor without a graph keeps its storage and nothing else.
    own = _bytes_of(case.holding.item) if len(case.below) == 1 else None
    return own is not None and case.holding.parts.get("tensors", 0.0) > LARGER * max(own, _FACE)


def _bytes_of(described: str) -> float | None:
    """The data of an array or tensor of that description; None if it says no shape."""
    found = _SHAPE.search(described)
    if found is None:
        return None
    shape = [int(size) for size in found[1].split(",") if size.strip()]
    return prod(shape) * (int(found[2]) / 8 if found[2] else 1)
