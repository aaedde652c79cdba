"""Small drawings that need no script: bars, a line beside a name, the road to the limit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from leakscope import text
from leakscope.model import Report

_PARTS = 12
_WIDTH, _HEIGHT = 120, 26
_ROAD_WIDTH, _ROAD_HEIGHT = 360, 120


class Bar(NamedTuple):
    name: str
    size: str
    share: str
    width: float
    """Of 100."""


class Road(NamedTuple):
    """From memory in use now to the limit, with the interval, in a box of 360 by 120."""

    now: float
    """Height of what is used now."""
    middle: float
    early: float
    late: float
    """Where the limit is met: most likely, at the earliest, at the latest."""
    labels: tuple[str, str, str]
    """The limit, what is used now, and when it ends."""


def bars(parts: Mapping[str, int], total: int) -> list[Bar]:
    """The parts, the largest first, each with its share of the total."""
    largest = max([1, *parts.values()])
    ordered = sorted(parts.items(), key=lambda part: -part[1])[:_PARTS]
    return [
        Bar(
            name,
            text.size(size),
            text.percent(size / total) if total > 0 else "",
            round(100 * max(size, 0) / largest, 2),
        )
        for name, size in ordered
    ]


def spark_line(values: Sequence[int]) -> str:
    """Points of a polyline of 120 by 26, from the lowest value to the highest."""
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    span = max(high - low, 1)
    return " ".join(
        f"{place * _WIDTH / (len(values) - 1):.1f},"
        f"{_HEIGHT - 2 - (value - low) / span * (_HEIGHT - 4):.1f}"
        for place, value in enumerate(values)
    )


def road(report: Report) -> Road | None:
    """How the forecast looks, or None where nothing heads for a limit."""
    ahead = report.forecast
    if ahead is None or ahead.limit_bytes <= 0 or not math.isfinite(ahead.steps_left.value):
        return None
    left = ahead.steps_left
    latest = left.high if math.isfinite(left.high) else 2 * left.value
    whole = max(latest, left.value, 1.0)
    when = f"step {text.about(ahead.at_step)}"
    if ahead.seconds_left is not None:
        when += f", in {text.duration(ahead.seconds_left.value)}"
    return Road(
        now=round(_ROAD_HEIGHT * (1 - min(max(ahead.now_bytes / ahead.limit_bytes, 0), 1)), 1),
        middle=_along(left.value, whole),
        early=_along(left.low if math.isfinite(left.low) else left.value, whole),
        late=_along(latest, whole),
        labels=(
            f"{text.size(ahead.limit_bytes)}, {text.clean(ahead.limit_from)}",
            f"{text.size(ahead.now_bytes)} now",
            when,
        ),
    )


def _along(steps: float, whole: float) -> float:
    return round(_ROAD_WIDTH * min(max(steps / whole, 0.0), 1.0), 1)
