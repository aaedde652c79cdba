"""What an expression may be, and how sure that is."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Kind(IntEnum):
    UNKNOWN = 0
    PLAIN = 1
    """A number, a text: nothing behind it."""
    ARRAY = 2
    """A tensor or array without a graph."""
    LEAF = 3
    """A parameter: it has no graph, but what is computed from it has."""
    GRAPH = 4
    """A tensor that carries its autograd graph."""


class Known(NamedTuple):
    kind: Kind
    is_sure: bool = True
    """False where a name had to stand for a type."""


UNKNOWN = Known(Kind.UNKNOWN, False)
