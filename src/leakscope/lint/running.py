"""Paths in, all hits out, and what could not be read."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from leakscope.lint.hit import Hit
from leakscope.lint.paths import Unread, python_files, read
from leakscope.lint.reading import hits_in
from leakscope.model import Gap


class Outcome(NamedTuple):
    hits: tuple[Hit, ...]
    unread: tuple[Unread, ...]
    files: int
    """So many were read."""


def lint(paths: Iterable[str], codes: Collection[str] | None = None) -> Outcome:
    """Every Python file below the paths, each once, in the order of the paths."""
    hits: list[Hit] = []
    unread: list[Unread] = []
    seen: set[str] = set()
    for file in python_files(paths):
        if file in seen:
            continue
        seen.add(file)
        text = read(file)
        if isinstance(text, Unread):
            unread.append(text)
            continue
        gaps: list[Gap] = []
        try:
            hits += hits_in(text, file, codes=codes, gaps=gaps)
        except SyntaxError as error:
            unread.append(Unread(file, f"line {error.lineno or 1}: {error.msg}"))
        except (ValueError, RecursionError, MemoryError) as error:
            unread.append(Unread(file, f"it is no Python ({type(error).__name__}: {error})"))
        unread += [Unread(file, f"by {gap.what}: {gap.why}") for gap in gaps]
    return Outcome(tuple(hits), tuple(unread), len(seen) - len({one.file for one in unread}))
