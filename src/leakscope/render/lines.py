"""Figures of lines → a table, for the terminal and for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from leakscope import text
from leakscope.model import Gap, LineFigures, LineRow
from leakscope.render.style import Style

_NOT_MEASURED = "·"
_HEADS = {
    "line": "line",
    "calls": "calls",
    "kept": "kept",
    "each": "per call",
    "called": "with calls",
    "peak": "peak",
    "device": "device kept",
    "device_peak": "device peak",
    "source": "source",
}
_SMALLEST_TOLD_BYTES = 1024
"""A line that keeps less in all is not named as the one that keeps most."""
_MUCH = 0.2
"""Of what lines took, given back by others: beyond it no line is named as keeping most."""

_CSS = (
    "border-collapse:collapse;font-family:monospace;font-size:90%",
    "text-align:right;padding:1px 8px;white-space:pre",
    "text-align:left;padding:1px 8px;white-space:pre",
)


def to_text(all_figures: Sequence[LineFigures], style: Style | None = None) -> str:
    """One table after the other; ends with a line break."""
    from leakscope.render.page import Page

    page = Page(style or Style())
    for figures in all_figures:
        page.blank()
        page.line(page.text(_title(figures), "bold"))
        page.line(page.text(_summary(figures)), indent=2)
        columns = _columns(figures)
        margin = _margin(figures)
        rows = [
            [page.text(cell, _look(row, figures)) for cell in _cells(row, columns, margin)]
            for row in figures.rows
        ]
        if rows:
            fixed = page.column_widths([_HEADS[name] for name in columns], rows)
            room = max(page.width - sum(fixed[:-1]) - 2 * len(fixed), 12)
            for cells in rows:
                cells[-1].truncate(room, overflow="ellipsis")
            right = range(len(columns) - 1)
            spare = [columns.index(name) for name in ("called", "each") if name in columns]
            page.table([_HEADS[name] for name in columns], rows, right=right, spare=spare)
    for gap in _gaps(all_figures):
        page.hang(page.text("  not seen: ", "dim"), page.text(_told(gap), "dim"))
    return str(page)


def to_html(all_figures: Sequence[LineFigures]) -> str:
    """The same for a notebook. Everything of the program's is escaped."""
    table, number, word = _CSS
    out = []
    for figures in all_figures:
        columns, margin = _columns(figures), _margin(figures)
        out.append(f"<p><b>{escape(_title(figures))}</b><br>{escape(_summary(figures))}</p>")
        out.append(f'<table style="{table}"><thead><tr>')
        for name in columns:
            look = word if name == "source" else number
            out.append(f'<th style="{look}">{escape(_HEADS[name])}</th>')
        out.append("</tr></thead><tbody>")
        for row in figures.rows:
            weight = ' style="font-weight:bold"' if row is _heaviest(figures) else ""
            out.append(f"<tr{weight}>")
            for name, cell in zip(columns, _cells(row, columns, margin), strict=True):
                look = word if name == "source" else number
                out.append(f'<td style="{look}">{escape(cell)}</td>')
            out.append("</tr>")
        out.append("</tbody></table>")
    gaps = "<br>".join(f"not seen: {escape(_told(gap))}" for gap in _gaps(all_figures))
    return "".join([*out, f"<p><small>{gaps}</small></p>" if gaps else ""])


def _title(figures: LineFigures) -> str:
    where = text.shorten_path(text.clean(figures.file), 60)
    return f"{text.clean(figures.function)}   {where}:{figures.first_line}"


def _summary(figures: LineFigures) -> str:
    if not figures.calls:
        return "not called since it is watched"
    called = text.plural(figures.calls, "call")
    kept = [row.kept_bytes for row in figures.rows if row.kept_bytes is not None]
    if not kept:
        return f"{called}; no line was measured"
    told = f"{called}, {text.signed_size(sum(kept))} kept"
    if _is_mixed(figures):
        back = text.size(-sum(one for one in kept if one < 0))
        told += f": {back} of what lines took, other lines gave back"
    heaviest = _heaviest(figures)
    if heaviest is not None and heaviest.kept_bytes is not None:
        each = text.signed_size(heaviest.kept_bytes / max(heaviest.calls, 1))
        told += f"; most by line {heaviest.line}, {each} each time"
    if any(row.is_estimate for row in figures.rows):
        told += "; ~ is estimated from some of the executions"
    return told


def _heaviest(figures: LineFigures) -> LineRow | None:
    """The line that keeps most; None if that cannot be told from the sums."""
    if _is_mixed(figures):
        return None
    rows = [row for row in figures.rows if (row.kept_bytes or 0) >= _SMALLEST_TOLD_BYTES]
    return max(rows, key=lambda row: row.kept_bytes or 0, default=None)


def _is_mixed(figures: LineFigures) -> bool:
    """Lines give back much of what others took (`zero_grad`, what `backward` did): whose bytes are
    left cannot be told from the sums."""
    kept = [row.kept_bytes or 0 for row in figures.rows]
    return -sum(one for one in kept if one < 0) > _MUCH * sum(one for one in kept if one > 0)


def _columns(figures: LineFigures) -> list[str]:
    columns = ["line", "calls", "kept", "each"]
    if any(row.with_calls_bytes != row.kept_bytes for row in figures.rows):
        columns.append("called")
    columns.append("peak")
    if any(row.device_kept_bytes is not None for row in figures.rows):
        columns += ["device", "device_peak"]
    return [*columns, "source"]


def _cells(row: LineRow, columns: Sequence[str], margin: int) -> list[str]:
    each = None if row.kept_bytes is None or not row.calls else row.kept_bytes / row.calls
    cells = {
        "line": str(row.line),
        "calls": text.count(row.calls),
        "kept": _size(row, row.kept_bytes),
        "each": _size(row, each),
        "called": _size(row, row.with_calls_bytes),
        "peak": "" if not row.peak_bytes else text.size(row.peak_bytes),
        "device": _size(row, row.device_kept_bytes),
        "device_peak": "" if not row.device_peak_bytes else text.size(row.device_peak_bytes),
        "source": _source(row.source, margin),
    }
    return [cells[name] for name in columns]


def _size(row: LineRow, n_bytes: float | None) -> str:
    if not row.calls:
        return ""
    if n_bytes is None:
        return _NOT_MEASURED
    if not n_bytes:
        return "0 B"
    return ("~" if row.is_estimate else "") + text.signed_size(n_bytes)


def _source(line: str, margin: int) -> str:
    """Its indentation says which loop it is in, so that much of it is kept."""
    return " " * max(_indentation(line) - margin, 0) + text.clean(line.strip())


def _margin(figures: LineFigures) -> int:
    """What all lines are indented by."""
    return min((_indentation(row.source) for row in figures.rows if row.source), default=0)


def _indentation(line: str) -> int:
    spread = line.expandtabs(4)
    return min(len(spread) - len(spread.lstrip()), 60)


def _look(row: LineRow, figures: LineFigures) -> str:
    if row is _heaviest(figures):
        return "bold red"
    return "" if row.calls else "dim"


def _gaps(all_figures: Sequence[LineFigures]) -> list[Gap]:
    return list(dict.fromkeys(gap for figures in all_figures for gap in figures.gaps))


def _told(gap: Gap) -> str:
    return text.sentence(f"{gap.what}: {gap.why}")
