"""The path from a root to what is kept, line by line; the reference to blame is underlined."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from leakscope import text
from leakscope.model import TraceLine
from leakscope.render.page import GAP, Page

_SHOWN = 12
_ENDS = 5
"""Of a longer path this many lines at each end are shown, and those to blame."""

_WIDEST_VIA = 24
_BRANCH = 5
"""Cells of a branch: two of indent, two to draw with, one apart."""


def draw(page: Page, trace: Sequence[TraceLine]) -> None:
    """Add the trace to the page. The lines must already be clean."""
    lines = _shortened(trace)
    widths = [page.text(line.via).cell_len for line in lines if line.what]
    # One long name must not push all the others to the right.
    column = max((width for width in widths if width <= _WIDEST_VIA), default=0)
    bodies = [_body(page, line, column, is_last=line is lines[-1]) for line in lines]
    noted = [body.cell_len for body, line in zip(bodies, lines, strict=True) if line.note]
    edge = max(noted, default=0)
    for index, (line, body) in enumerate(zip(lines, bodies, strict=True)):
        is_last = index == len(lines) - 1
        branch = "╰→ " if is_last else "┬  " if index == 0 else "├─ "
        _line(page, line, body, edge, branch, below="   " if is_last else "│  ")


def _body(page: Page, line: TraceLine, column: int, *, is_last: bool) -> Text:
    look = "bold" if is_last else ""
    via = page.text(line.via, "bold red" if line.is_suspect else look)
    if not (line.via and line.what):
        return Text.assemble(via, page.text(line.what, look))
    space = " " * max(column - via.cell_len, 0)
    return Text.assemble(via, space, GAP, page.text(line.what, look))


def _line(page: Page, line: TraceLine, body: Text, edge: int, branch: str, below: str) -> None:
    start = page.text(f"  {branch}", "dim")
    under = page.text(f"  {below}", "dim")
    note = page.text(line.note, "yellow" if line.is_suspect else "dim") if line.note else Text()
    apart = " " * (max(edge - body.cell_len, 0) + 3)
    for space in (apart, " " * 3):
        if note and page.fits(start, body, Text(space), note):
            body, note = Text.assemble(body, space, note), Text()
    is_whole = page.fits(start, body)
    first = body if is_whole or not line.via else _cut(page, line)
    page.hang(start, first, under)
    if line.is_suspect and line.via:
        _underline(page, line, under)
    if first is not body:
        page.hang(Text.assemble(under, GAP), page.text(line.what), Text.assemble(under, GAP))
    if note:
        page.hang(Text.assemble(under, GAP), note, Text.assemble(under, GAP))


def _cut(page: Page, line: TraceLine) -> Text:
    via = page.text(line.via, "bold red" if line.is_suspect else "")
    via.truncate(page.width - _BRANCH, overflow="ellipsis")
    return via if page.text("…").plain == "…" else page.text(via.plain, str(via.style))


def _underline(page: Page, line: TraceLine, under: Text) -> None:
    dot = 1 if line.via.startswith(".") else 0
    cells = min(page.text(line.via).cell_len, page.width - _BRANCH) - dot
    if cells > 0:
        page.hang(Text.assemble(under, " " * dot), page.text("~" * cells, "red"))


def _shortened(trace: Sequence[TraceLine]) -> list[TraceLine]:
    """Both ends of a long path and what is to blame; the rest is counted."""
    if len(trace) <= _SHOWN:
        return list(trace)
    last = len(trace) - _ENDS
    shown: list[TraceLine] = []
    hidden = 0
    for index, line in enumerate(trace):
        if index < _ENDS or index >= last or line.is_suspect:
            if hidden:
                shown.append(_more(hidden))
            shown.append(line)
            hidden = 0
        else:
            hidden += 1
    return shown


def _more(hidden: int) -> TraceLine:
    return TraceLine("", f"… {text.plural(hidden, 'link')} more")
