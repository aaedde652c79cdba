"""Versions of packages: whether one lies within `>=2.0,<2.4`."""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne
from typing import Any

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": ge, "<=": le, "==": eq, "!=": ne, ">": gt, "<": lt,
}  # fmt: skip
_PART = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+)*)\s*")
_DIGITS = 4
"""More parts than a release has."""


def parts_of(versions: str) -> tuple[tuple[str, tuple[int, ...]], ...] | None:
    """Operator and release of each part; None if it cannot be read."""
    matches = [_PART.fullmatch(part) for part in versions.split(",")]
    found = tuple((match[1], _numbers(match[2])) for match in matches if match is not None)
    return found if len(found) == len(matches) else None


def is_within(version: str, versions: str) -> bool:
    """What follows the release (`rc1`, `+cpu`) is not looked at; an odd version is within none."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    parts = parts_of(versions)
    if match is None or parts is None:
        return False
    release = _numbers(match[0])
    return all(_OPERATORS[operator](release, bound) for operator, bound in parts)


def _numbers(release: str) -> tuple[int, ...]:
    numbers = [int(part) for part in release.split(".")][:_DIGITS]
    return tuple(numbers + [0] * (_DIGITS - len(numbers)))
