"""Bisection → what a person reads in the terminal, pastes into an issue, or a program reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from leakscope import errors, text
from leakscope.model import Bisection, Cause, Effect, FactorResult, Rate
from leakscope.render.markdown import code, escaped, table
from leakscope.render.page import Page
from leakscope.render.style import Style

_LOOKS = {
    Effect.REMOVED: "bold green",
    Effect.REDUCED: "bold yellow",
    Effect.LARGER: "bold red",
    Effect.SAME: "",
    Effect.UNCLEAR: "dim",
}
_HEADS = ("changed", "growth", "in use", "resident", "runs")


def render_bisection(bisection: Bisection, to: str, style: Style | None = None) -> str:
    """The bisection as a document that ends with a line break.

    Raises:
        LeakscopeError: there is no format of that name.
    """
    if to not in _FORMATS:
        raise errors.unknown_format(to, tuple(sorted(_FORMATS)))
    return _FORMATS[to](bisection, style or Style())


def _to_json(bisection: Bisection, style: Style) -> str:
    return msgspec.json.format(msgspec.json.encode(bisection), indent=2).decode() + "\n"


def _to_terminal(bisection: Bisection, style: Style) -> str:
    page = Page(style)
    word = page.text(bisection.cause.value.upper(), _look(bisection.cause))
    word.append("  ")
    page.hang(word, page.text(text.sentence(bisection.says), "bold"))
    rows = []
    for row, effect in _rows(bisection):
        cells = [page.text(one) for one in row]
        cells[1] = page.text(row[1], _LOOKS[effect] if effect is not None else "")
        rows.append(cells)
    if rows:
        page.blank()
        page.table(_HEADS, rows, spare=(4, 3 if bisection.lead == "live" else 2))
    page.blank()
    for one in bisection.factors:
        if one.effect is Effect.UNCLEAR:
            page.hang(
                page.text(f"  {'unclear':<12}", "dim"),
                page.text(f"{text.clean(one.title)}: {text.clean(one.because)}"),
            )
    for left in bisection.left_out:
        page.hang(
            page.text(f"  {'not tried':<12}", "dim"),
            page.text(f"{text.clean(left.factor)}: {text.clean(left.why)}"),
        )
    runs = text.plural(len(bisection.baseline) + sum(one.runs for one in bisection.factors), "run")
    took = f"{runs} in {text.duration(bisection.seconds)}"
    page.hang(page.text(f"  {'time':<12}", "dim"), page.text(took))
    return str(page)


def _look(cause: Cause) -> str:
    return {Cause.UNKNOWN: "bold cyan", Cause.STEADY: "bold green"}.get(cause, "bold yellow")


def _rows(bisection: Bisection) -> Iterator[tuple[tuple[str, ...], Effect | None]]:
    for number, one in enumerate(bisection.baseline, 1):
        name = "as it is" if number == 1 else "as it is, again"
        yield (name, "", _between(one.live), _between(one.resident), "1"), None
    for result in bisection.factors:
        yield _row(result), result.effect


def _row(one: FactorResult) -> tuple[str, ...]:
    return (
        text.clean(one.title),
        one.effect.value,
        _between(one.live),
        _between(one.resident),
        str(one.runs),
    )


def _between(rate: Rate | None) -> str:
    """`+12.0 to +12.4 KiB`: the interval says how sure the number is."""
    return text.rate_between(rate.low, rate.high).removesuffix("/step") if rate else "not read"


def _to_markdown(bisection: Bisection, style: Style) -> str:
    command = code(text.command_line(bisection.command))
    blocks = [
        f"## {bisection.cause.value.upper()}: {escaped(text.sentence(bisection.says))}",
        command,
        table((*_HEADS, "setting"), list(_with_settings(bisection))),
    ]
    left = [f"- not tried: {escaped(f'{one.factor}: {one.why}')}" for one in bisection.left_out]
    if left:
        blocks.append("\n".join(left))
    return "\n\n".join(blocks) + "\n"


def _with_settings(bisection: Bisection) -> Iterator[tuple[str, ...]]:
    settings = {one.title: one.setting for one in bisection.factors}
    for row, _ in _rows(bisection):
        yield (*row, text.clean(settings.get(row[0], "")))


_FORMATS: dict[str, Callable[[Bisection, Style], str]] = {
    "terminal": _to_terminal,
    "markdown": _to_markdown,
    "json": _to_json,
}
