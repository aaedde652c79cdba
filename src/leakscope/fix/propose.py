"""Suspects in, changes out: which edit a finding calls for, and why none was found."""

from __future__ import annotations

import ast
import difflib
import os
from collections.abc import Mapping, Sequence

from leakscope.attribute.suspect import Suspect
from leakscope.fix.caches import bound_cache, is_cache
from leakscope.fix.copies import keep_copy, keep_without_traceback, keeps_base, keeps_traceback
from leakscope.fix.detach import carries_graph, let_go_of_graph
from leakscope.fix.edits import CannotEditError, Change
from leakscope.fix.iterators import loop_anew, remembers_all
from leakscope.fix.keeping import Keeping, keeping_of
from leakscope.fix.tails import keep_last

_NOBODY_HOLDS = ("native", "gradient cycle", "shared-pages", "cycle", "frozen")

_NEVER = ("retain_graph", "create_graph")
"""Whoever writes these wants the graph: their statements stay as they are."""

_CONTEXT = 1


def propose(suspect: Suspect, sources: Mapping[str, str]) -> Change | None:
    """The edits that stop the growth and change nothing else; None where that is not certain."""
    if suspect.holding.kind in _NOBODY_HOLDS or suspect.is_bounded:
        return None
    keeping = keeping_of(suspect, sources)
    if keeping is None or _wants_graph(keeping):
        return None
    try:
        return _propose(keeping)
    except (CannotEditError, RecursionError):
        return None


def _propose(keeping: Keeping) -> Change | None:
    if is_cache(keeping):
        return bound_cache(keeping)
    if remembers_all(keeping):
        return loop_anew(keeping)
    if keeps_traceback(keeping):
        return keep_without_traceback(keeping)
    if carries_graph(keeping):
        return _with_bound(let_go_of_graph(keeping), keeping)
    if keeps_base(keeping):
        return _with_bound(keep_copy(keeping), keeping)
    return keep_last(keeping)


_LEFT_SHARE = 0.1
"""Of what one item keeps: if more than that is kept without its graph or base, too, a list of which
only the end is read is cut as well."""


def _with_bound(change: Change | None, keeping: Keeping) -> Change | None:
    if change is None:
        return keep_last(keeping)
    if carries_graph(keeping) and keeping.share_of("tensors", "arrays", "python") < _LEFT_SHARE:
        return change
    return change + keep_last(keeping)


def _wants_graph(keeping: Keeping) -> bool:
    return any(
        isinstance(node, ast.keyword) and node.arg in _NEVER for node in ast.walk(keeping.statement)
    )


def unified_diff(before: str, after: str, file: str, directory: str) -> str:
    """As `diff -u` would say it with one line of context, paths from the program's folder."""
    name = (
        os.path.relpath(file, directory) if file.startswith(directory.rstrip("/") + "/") else file
    )
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"a/{name}" if not os.path.isabs(name) else name,
        f"b/{name}" if not os.path.isabs(name) else name,
        n=_CONTEXT,
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def merged(changes: Sequence[Change]) -> dict[str, Change]:
    """The changes of several findings, file by file; the same edit once."""
    by_file: dict[str, Change] = {}
    for change in changes:
        known = by_file.get(change.file)
        by_file[change.file] = known + change if known is not None else change
    return by_file
