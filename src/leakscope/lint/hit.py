"""What the linter says about one line, and what a check is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ast

    from leakscope.lint.file import File

LIKELY = "likely"
"""The pattern is all there: what is kept, where, and that nothing takes it out again."""
POSSIBLE = "possible"
"""A name had to stand for a type, or the pattern is sometimes meant."""


class Spot(NamedTuple):
    """A place a check points at."""

    node: ast.AST
    says: str
    certainty: str


class Hit(NamedTuple):
    """A suspicion about one line. Only a run can prove it."""

    rule: str
    name: str
    file: str
    line: int
    column: int
    """From 1, as editors count."""
    says: str
    certainty: str
    suggestion: str


@dataclass(frozen=True)
class Check:
    """One rule as far as the source shows it."""

    code: str
    name: str
    """As the rule of this number is called."""
    summary: str
    suggestion: str
    find: Callable[[File], Iterator[Spot]]
