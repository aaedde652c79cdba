"""Lines of text that never exceed a width: paragraphs, hanging labels, tables, bars.

Everything is a `rich.text.Text`, never markup, so a foreign `[red]` stays what it is.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from leakscope.render.style import Style

GAP = "  "

# One cell for one cell: the layout is done before the alphabet is reduced.
_TO_ASCII = str.maketrans(
    {
        "┬": "+", "├": "+", "╰": "`", "─": "-", "→": ">", "│": "|", "█": "#", "▌": "#",
        "·": "-", "…": "~", "×": "x", "–": "-", "µ": "u",
    }
)  # fmt: skip


class Page:
    """Collects lines for one style; `str(page)` is the document."""

    def __init__(self, style: Style) -> None:
        self.width = style.columns
        self._is_ascii = style.is_ascii
        self._lines: list[Text] = []
        self._console = Console(
            file=io.StringIO(),
            width=self.width,
            color_system="standard" if style.has_colour else None,
            force_terminal=style.has_colour,
            no_color=not style.has_colour,
            legacy_windows=False,
            _environ={},
        )

    def text(self, words: str, look: str = "") -> Text:
        """Words in one look, in the page's alphabet. They must already be clean."""
        if self._is_ascii:
            words = words.translate(_TO_ASCII).encode("ascii", "backslashreplace").decode()
        return Text(words, style=look, end="")

    def blank(self) -> None:
        if self._lines and self._lines[-1].plain:
            self._lines.append(Text())

    def line(self, body: Text, *, indent: int = 0) -> None:
        """A paragraph; further lines are indented like the first."""
        self.hang(Text(" " * indent), body)

    def hang(self, label: Text, body: Text, below: Text | None = None) -> None:
        """A paragraph that hangs beside its label; `below` stands beside its further lines."""
        label = label.copy()
        label.truncate(self.width // 2)
        rest = self.width - label.cell_len
        lines = self._wrapped(body, rest) or [Text()]
        for index, piece in enumerate(lines):
            start = label if index == 0 else below or Text(" " * label.cell_len)
            self._append(Text.assemble(start, piece))

    def fits(self, *pieces: Text, indent: int = 0) -> bool:
        return indent + sum(piece.cell_len for piece in pieces) <= self.width

    def spread(self, left: Text, *right: Text) -> None:
        """Left and right on one line if they fit, otherwise one under the other.

        What is on the right are parts; where they need several lines, none is torn.
        """
        dot = self.text(" · ")
        whole = dot.join(right)
        space = self.width - left.cell_len - whole.cell_len
        if space >= len(GAP):
            self._append(Text.assemble(left, " " * space, whole))
            return
        self.line(left)
        row: list[Text] = []
        for part in right:
            if row and not self.fits(dot.join([*row, part]), indent=2):
                self.line(dot.join(row), indent=2)
                row = []
            row.append(part)
        self.line(dot.join(row), indent=2)

    def table(
        self,
        headers: Sequence[str],
        rows: Sequence[Sequence[Text]],
        *,
        right: Sequence[int] = (),
        spare: Sequence[int] = (),
        indent: int = 2,
        has_head: bool = True,
        widths: Sequence[int] | None = None,
    ) -> None:
        """Columns where they fit; otherwise each row becomes a small paragraph.

        Columns in `spare` may be left out, in that order, to make the others fit.
        """
        heads = [self.text(header, "dim") for header in headers]
        if widths is None:
            widths = self.column_widths(headers, rows)
        columns = self._columns_that_fit(widths, spare, indent)
        if columns is None:
            for row in rows:
                self._stack(heads, row, indent)
            return
        for row in [heads, *rows] if has_head else rows:
            cells = [_padded(row[i], widths[i], is_right=i in right) for i in columns]
            self._append(Text.assemble(" " * indent, Text(GAP).join(cells)))

    def column_widths(self, headers: Sequence[str], rows: Sequence[Sequence[Text]]) -> list[int]:
        return [
            max([cell_len(header), *(row[index].cell_len for row in rows)])
            for index, header in enumerate(headers)
        ]

    def _columns_that_fit(
        self, widths: Sequence[int], spare: Sequence[int], indent: int
    ) -> list[int] | None:
        columns = list(range(len(widths)))
        for drop in (None, *spare):
            if drop is not None:
                columns.remove(drop)
            needed = sum(widths[i] for i in columns) + len(GAP) * (len(columns) - 1)
            if indent + needed <= self.width:
                return columns
        return None

    def _stack(self, heads: Sequence[Text], row: Sequence[Text], indent: int) -> None:
        self.line(row[0], indent=indent)
        pieces = []
        for head, cell in zip(heads[1:], row[1:], strict=True):
            if cell.plain:
                label = Text.assemble(head, " ") if head.plain else Text()
                pieces.append(Text.assemble(label, cell))
        self.line(Text(", ").join(pieces), indent=indent + 2)

    def _wrapped(self, body: Text, width: int) -> list[Text]:
        lines = body.wrap(self._console, max(width, 2), overflow="fold")
        for line in lines:
            line.rstrip()
        return list(lines)

    def _append(self, line: Text) -> None:
        line = line.copy()
        line.rstrip()
        self._lines.append(line)

    def __str__(self) -> str:
        with self._console.capture() as capture:
            for line in self._lines:
                self._console.print(
                    line, end="\n", markup=False, highlight=False, emoji=False, soft_wrap=True
                )
        return capture.get().rstrip("\n") + "\n"


def _padded(cell: Text, width: int, *, is_right: bool) -> Text:
    space = " " * (width - cell.cell_len)
    return Text.assemble(space, cell) if is_right else Text.assemble(cell, space)
