"""Stacks and lines as places in the program's own source."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from leakscope.model import BACKWARD, Frame, Site, SiteTally

_STARTS_BACKWARD = re.compile(r"\.backward\(|autograd\.grad\(")


def site_of(sites: Sequence[SiteTally], sources: Mapping[str, str]) -> Site | None:
    """The innermost line of the user's code in the most frequent stack that has one."""
    for tally in sites:
        for frame in tally.frames:
            if frame.file in sources:
                return place(sources, frame)
            if frame.file == BACKWARD and (started := _backward_call(sources)) is not None:
                return place(sources, started)
    return None


def _backward_call(sources: Mapping[str, str]) -> Frame | None:
    """The line that starts the backward pass, which has no stack of its own; if there is one only,
    for otherwise nobody knows which."""
    found = [
        Frame(file, number)
        for file, text in sources.items()
        for number, line in enumerate(text.splitlines(), 1)
        if _STARTS_BACKWARD.search(line)
    ]
    return found[0] if len(found) == 1 else None


def place(sources: Mapping[str, str], frame: Frame) -> Site:
    text = sources.get(frame.file, "")
    lines = text.splitlines()
    source = lines[frame.line - 1].strip() if 0 < frame.line <= len(lines) else None
    function = frame.function or _function_at(text, frame.line)
    return Site(frame.file, frame.line, function or None, source)


def relative(site: Site, directory: str) -> Site:
    """As the user would say it: from the program's working directory where that is shorter."""
    file = site.file
    if file.startswith(directory.rstrip(os.sep) + os.sep):
        file = os.path.relpath(file, directory)
    return Site(file, site.line, site.function, site.source)


@lru_cache(maxsize=64)
def _functions(text: str) -> tuple[tuple[int, int, str], ...]:
    """(first line, last line, qualified name) of each function; none if the text is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    found: list[tuple[int, int, str]] = []

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}"
                if not isinstance(child, ast.ClassDef):
                    found.append((child.lineno, child.end_lineno or child.lineno, name))
                visit(child, f"{name}.")
            else:
                visit(child, prefix)

    visit(tree, "")
    return tuple(found)


def _function_at(text: str, line: int) -> str:
    inside = [one for one in _functions(text) if one[0] <= line <= one[1]]
    return max(inside, default=(0, 0, ""))[2]
