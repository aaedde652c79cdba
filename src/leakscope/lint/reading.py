"""A file's text in, its hits out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache

from leakscope import plugins
from leakscope.lint.file import File
from leakscope.lint.hit import Check, Hit
from leakscope.model import Gap

FOLDER = "leakscope.lint.rules"
GROUP = "leakscope.lint"

_IGNORE = re.compile(r"#\s*leakscope:\s*ignore(?:\[([A-Z0-9,\s]*)\])?")


@cache
def load_checks() -> tuple[tuple[Check, ...], tuple[Gap, ...]]:
    """Ours and those of installed packages, by number."""
    checks, gaps = plugins.load(FOLDER, GROUP, Check)
    return tuple(sorted(checks, key=lambda one: one.code)), gaps


def hits_in(
    text: str,
    file: str,
    *,
    codes: Collection[str] | None = None,
    gaps: list[Gap] | None = None,
) -> list[Hit]:
    """What the checks suspect in one file, from its first line to its last.

    `codes`: only these. `gaps` gets what a check failed at; without it the failure is raised.
    Raises what `ast.parse` raises: SyntaxError, ValueError."""
    read = File.of(text)
    ignored = _ignored_lines(text)
    found: dict[tuple[int, str], Hit] = {}
    for check in load_checks()[0]:
        if codes is None or check.code in codes:
            for hit in _found(check, read, file, gaps):
                if not _is_ignored(hit, ignored):
                    found.setdefault((hit.line, hit.rule), hit)
    return sorted(found.values(), key=lambda hit: (hit.line, hit.column, hit.rule))


def _found(check: Check, read: File, file: str, gaps: list[Gap] | None) -> list[Hit]:
    if gaps is None:
        return list(_spots(check, read, file))
    return plugins.guarded(lambda: list(_spots(check, read, file)), check.code, gaps) or []


def _spots(check: Check, read: File, file: str) -> Iterator[Hit]:
    try:
        for spot in check.find(read):
            line = getattr(spot.node, "lineno", 1)
            column = getattr(spot.node, "col_offset", 0) + 1
            yield Hit(
                check.code, check.name, file, line, column, spot.says, spot.certainty,
                check.suggestion,
            )  # fmt: skip
    except RecursionError:
        # An expression nested a thousand deep is made by a machine; the other checks go on.
        return


def _ignored_lines(text: str) -> dict[int, frozenset[str]]:
    """By line: the rules that are not to be told there; empty for all."""
    if "leakscope:" not in text:
        return {}
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if match := _IGNORE.search(line):
            codes = (match[1] or "").replace(" ", "").split(",")
            found[number] = frozenset(code for code in codes if code)
    return found


def _is_ignored(hit: Hit, ignored: dict[int, frozenset[str]]) -> bool:
    codes = ignored.get(hit.line)
    return codes is not None and (not codes or hit.rule in codes)
