"""Comparison → what a person reads in the terminal, pastes into an issue, or a program reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from leakscope import errors, text
from leakscope.model import Comparison, Difference, FindingPair, Likelihood, SeriesPair, Side
from leakscope.render.markdown import code, escaped, table
from leakscope.render.page import Page
from leakscope.render.style import Style

_LABEL = 12
_SHOWN = 8
_SERIES = 12
_ALWAYS = ("main", "all")
_LOOKS = {
    Likelihood.LIKELY: "bold red",
    Likelihood.POSSIBLE: "bold yellow",
    Likelihood.UNLIKELY: "dim",
    Likelihood.UNKNOWN: "dim",
}
PAGE = "docs/machine-effects.md"


def render_comparison(comparison: Comparison, to: str, style: Style | None = None) -> str:
    """The comparison as a document that ends with a line break.

    Raises:
        LeakscopeError: there is no format of that name.
    """
    if to not in _FORMATS:
        raise errors.unknown_format(to, tuple(sorted(_FORMATS)))
    return _FORMATS[to](comparison, style or Style())


def _to_json(comparison: Comparison, style: Style) -> str:
    return msgspec.json.format(msgspec.json.encode(comparison), indent=2).decode() + "\n"


def _to_terminal(comparison: Comparison, style: Style) -> str:
    page = Page(style)
    page.line(page.text(text.clean(comparison.says), "bold"))
    page.blank()
    rows = [[page.text(one) for one in row] for row in _runs(comparison)]
    page.table(("", "A", "B"), rows)
    shown = [one for one in comparison.series if one.differs or one.process in _ALWAYS][:_SERIES]
    if shown:
        page.blank()
        page.table(
            ("series", "A", "B", "", "shapes"),
            [[page.text(one) for one in _series_row(pair)] for pair in shown],
            spare=(4,),
        )
    if left := len(comparison.series) - len(shown):
        page.line(page.text(f"and {text.plural(left, 'other')}, in --format json", "dim"), indent=2)
    if comparison.findings:
        page.blank()
        page.table(
            ("finding", "A", "B", "where"),
            [[page.text(one) for one in _finding_row(pair)] for pair in comparison.findings],
            spare=(3,),
        )
    page.blank()
    _differences(page, comparison.differences)
    for note in comparison.notes:
        page.hang(page.text(f"  {'note':<{_LABEL}}", "dim"), page.text(text.sentence(note)))
    return str(page)


def _differences(page: Page, differences: tuple[Difference, ...]) -> None:
    if not differences:
        page.line(page.text("Nothing that is known of the two machines differs."))
        return
    page.line(page.text("What differs between the machines, the likeliest reason first"))
    weighty = [one for one in differences if one.effect]
    for one in weighty[:_SHOWN]:
        word = page.text(f"  {one.likelihood.value:<{_LABEL}}", _LOOKS[one.likelihood])
        page.hang(word, page.text(_values(one), "bold"))
        for label, words in _reasons(one):
            page.hang(page.text(f"  {'':<{_LABEL}}{label:<8}", "dim"), page.text(words))
    rest = [*weighty[_SHOWN:], *(one for one in differences if not one.effect)]
    if rest:
        names = ", ".join(text.clean(one.what) for one in rest)
        page.hang(page.text(f"  {'and':<{_LABEL}}", "dim"), page.text(names))


def _reasons(one: Difference) -> Iterator[tuple[str, str]]:
    yield "why", text.sentence(one.because)
    if one.also:
        yield "also", text.clean("; ".join(one.also))
    if one.likelihood in (Likelihood.LIKELY, Likelihood.POSSIBLE):
        yield "do", text.clean(one.remedy)
        yield "see", f"{PAGE}#{text.clean(one.effect)}"


def _values(one: Difference) -> str:
    return text.clean(f"{one.what}: {one.a or 'not set'} in A, {one.b or 'not set'} in B")


def _runs(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    a, b = comparison.a, comparison.b
    yield "run", text.clean(a.run), text.clean(b.run)
    yield "machine", text.clean(a.host), text.clean(b.host)
    yield "verdict", a.verdict.value.upper(), b.verdict.value.upper()
    yield "steps", *(f"{text.count(one.steps)} ({one.steps_from})" for one in (a, b))
    if a.peak_bytes is not None or b.peak_bytes is not None:
        yield "highest point", *(_size(one.peak_bytes) for one in (a, b))
        yield "held, freed", *(_size(one.held_bytes) for one in (a, b))
    if a.workers or b.workers:
        yield "workers", str(a.workers), str(b.workers)
        yield "their own memory", *(_size(one.workers_private_bytes) for one in (a, b))


def _size(n_bytes: int | None) -> str:
    return text.size(n_bytes) if n_bytes is not None else "not known"


def _series_row(pair: SeriesPair) -> tuple[str, str, str, str, str]:
    name = text.metric(pair.metric)
    if pair.process not in ("main", "all"):
        name = f"{name}, {text.clean(pair.process)}"
    shapes = " | ".join(side.shape.value if side else "-" for side in (pair.a, pair.b))
    return name, _side(pair.a), _side(pair.b), "differs" if pair.differs else "", shapes


def _side(side: Side | None) -> str:
    if side is None:
        return "not read"
    return f"{side.outcome.value.upper()} {text.rate(side.bytes_per_step.value)}"


def _finding_row(pair: FindingPair) -> tuple[str, str, str, str]:
    rates = (
        text.rate(rate) if rate is not None else "-"
        for rate in (pair.a_bytes_per_step, pair.b_bytes_per_step)
    )
    a, b = rates
    return f"{text.clean(pair.rule)} {text.clean(pair.name)}", a, b, text.clean(pair.where)


def _to_markdown(comparison: Comparison, style: Style) -> str:
    blocks = [
        f"## {escaped(text.clean(comparison.says))}",
        table(("", "A", "B"), list(_runs(comparison))),
        table(("series", "A", "B", "", "shapes"), list(map(_series_row, comparison.series))),
    ]
    if comparison.findings:
        rows = list(map(_finding_row, comparison.findings))
        blocks.append(table(("finding", "A", "B", "where"), rows))
    if comparison.differences:
        blocks.append("### What differs between the machines, the likeliest reason first")
        blocks.append("\n".join(_item(one) for one in comparison.differences))
    if comparison.notes:
        blocks.append("\n".join(f"- {escaped(text.sentence(one))}" for one in comparison.notes))
    return "\n\n".join(blocks) + "\n"


def _item(one: Difference) -> str:
    said = f"- **{one.likelihood.value}**: {code(_values(one))}. "
    said += escaped(text.sentence(one.because))
    if one.also:
        said += f" Also {escaped(text.clean('; '.join(one.also)))}."
    if one.url:
        said += f" [{escaped(one.effect)}](<{one.url}>)"
    return said


_FORMATS: dict[str, Callable[[Comparison, Style], str]] = {
    "terminal": _to_terminal,
    "markdown": _to_markdown,
    "json": _to_json,
}
