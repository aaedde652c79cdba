"""Numbers in, lines of braille out: one curve with its own scale, as wide and high as asked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from leakscope import text

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a braille cell: four rows of two."""
_BLANK = 0x2800

_SMALLEST_RANGE = 0.02
"""A curve that moves by less than 2 % of its level is drawn as flat as it is."""


def plot(values: Sequence[tuple[float, float]], width: int, height: int) -> list[str]:
    """The curve with the sizes of its highest and lowest edge at the left.

    Args:
        values: pairs of place and size in bytes, in rising order of place.
    """
    if not values or height < 1:
        return []
    low, high = _edges([size for _, size in values])
    labels = [text.size(high), text.size(low)] if height > 1 else [text.size(values[-1][1])]
    margin = max(map(len, labels)) + 1
    rows = _curve(values, max(width - margin, 4), height, low, high)
    starts = [labels[0], *[""] * (height - 2), labels[-1]] if height > 1 else labels
    return [
        f"{start:>{margin - 1}}{'┤' if start else '│'}{row}"
        for start, row in zip(starts, rows, strict=True)
    ]


def _edges(sizes: Sequence[float]) -> tuple[float, float]:
    low, high = min(sizes), max(sizes)
    room = _SMALLEST_RANGE * abs(high) - (high - low)
    if room > 0:
        low, high = max(low - room / 2, 0.0), high + room / 2
    return (low, high) if high > low else (low, low + 1)


def _curve(
    values: Sequence[tuple[float, float]], cells: int, height: int, low: float, high: float
) -> list[str]:
    columns = _by_column(values, cells * 2)
    top = height * 4 - 1
    grid = [[0] * cells for _ in range(height)]
    before: int | None = None
    for x, size in enumerate(columns):
        y = round((size - low) / (high - low) * top)
        # A steep rise is drawn as one: the dots between two columns belong to the later one.
        first = y if before is None or abs(y - before) < 2 else before + (1 if y > before else -1)
        for dot in range(min(first, y), max(first, y) + 1):
            row, bit = divmod(top - dot, 4)
            grid[row][x // 2] |= _DOTS[bit][x % 2]
        before = y
    return ["".join(chr(_BLANK + bits) for bits in row) for row in grid]


def _by_column(values: Sequence[tuple[float, float]], columns: int) -> list[float]:
    """The highest value that falls into each column; a straight line over those without any."""
    first, last = values[0][0], values[-1][0]
    span = (last - first) or 1.0
    highest: dict[int, float] = {}
    for at, size in values:
        column = min(int((at - first) / span * columns), columns - 1)
        highest[column] = max(highest.get(column, size), size)
    known = sorted(highest)
    drawn = [highest[known[0]]] * (known[0] + 1)
    for left, right in pairwise(known):
        rise = (highest[right] - highest[left]) / (right - left)
        drawn += [highest[left] + rise * (column - left) for column in range(left + 1, right)]
        drawn.append(highest[right])
    return drawn + [highest[known[-1]]] * (columns - len(drawn))
