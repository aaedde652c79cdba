"""What a fix does to a file, said without touching it: a few kinds of edits at places."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from leakscope.attribute.program import Module


class CannotEditError(Exception):
    """The edit does not fit the text: nothing is proposed. Says why."""


@dataclass(frozen=True, slots=True)
class Span:
    """From the first character of something to behind its last; columns count characters."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Wrap:
    """`x` → `x.detach()`, `a + b` → `(a + b).detach()`."""

    span: Span
    suffix: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Another expression instead of this one."""

    span: Span
    code: str


@dataclass(frozen=True, slots=True)
class After:
    """One more statement below the one that begins here."""

    span: Span
    code: str


@dataclass(frozen=True, slots=True)
class Decorate:
    """A decorator above the function that begins here."""

    span: Span
    code: str


@dataclass(frozen=True, slots=True)
class Import:
    """A name that the new code needs: `import torch`, or `from functools import lru_cache`."""

    module: str
    name: str = ""


Edit = Wrap | Replace | After | Decorate | Import


@dataclass(frozen=True, slots=True)
class Change:
    """Edits of one file that belong together."""

    file: str
    edits: tuple[Edit, ...]

    def __add__(self, other: Change | None) -> Change:
        if other is None or other.file != self.file:
            return self
        return Change(self.file, tuple(dict.fromkeys((*self.edits, *other.edits))))


def span_of(module: Module, node: ast.AST) -> Span:
    """The parser counts bytes, people and libcst count characters."""
    line, end = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    if not line or not end:
        raise CannotEditError("a part of the statement has no place")
    return Span(
        line,
        _characters(module.lines, line, getattr(node, "col_offset", 0)),
        end,
        _characters(module.lines, end, getattr(node, "end_col_offset", 0)),
    )


def _characters(lines: Sequence[str], line: int, column: int) -> int:
    return len(lines[line - 1].encode()[:column].decode(errors="replace"))
