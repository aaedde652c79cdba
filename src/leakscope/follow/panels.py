"""A glimpse in, text out: one function for each part of the view. Knows no screen."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from leakscope import text
from leakscope.follow.glimpse import Glimpse, Member
from leakscope.follow.plot import plot
from leakscope.model import Finding, Outcome, Report
from leakscope.render import Style, sentences
from leakscope.render.page import Page

Draw = Callable[[Glimpse, int, int], Text]
"""A glimpse, and the cells there are: width and height."""

LOOKS = {
    Outcome.LEAK: "bold red",
    Outcome.GROWING: "bold yellow",
    Outcome.STEADY: "bold green",
    Outcome.UNKNOWN: "bold cyan",
}
_MEMBERS_SHOWN = 24
_BAR_CELLS = 16


def headline(view: Glimpse, width: int, height: int) -> Text:
    """The answer so far, and where the run is."""
    lines = [_where(view, width)]
    if view.trouble:
        lines.append(Text(text.clean(view.trouble), "bold red"))
    report = view.report
    if report is None:
        lines.append(Text("not judged yet", "dim"))
    else:
        word = Text(report.verdict.value.upper(), LOOKS[report.verdict])
        lines.append(Text.assemble(word, "  ", text.sentence(report.because)))
        if ahead := sentences.forecast(report):
            lines.append(Text.assemble(("forecast  ", "dim"), (ahead, "yellow")))
        if report.verdict is Outcome.STEADY and (least := sentences.smallest_visible(report)):
            lines.append(Text(f"the smallest leak this run could have shown: {least}", "dim"))
        if not view.is_over:
            ago = text.duration(round(view.judged_seconds_ago))
            lines.append(Text(f"judged {ago} ago, over {_steps(report)}", "dim"))
    return Text("\n").join(lines)


def _where(view: Glimpse, width: int) -> Text:
    parts = [view.state, text.duration(round(view.seconds, 1))]
    if view.step is not None:
        parts.append(f"step {text.count(view.step)}")
    report = view.report
    if view.is_by_steps and report is not None and report.step_seconds is not None:
        parts.append(f"{text.duration(report.step_seconds)} a step")
    told = " · ".join(parts)
    space = width - len(told) - 2
    program = text.shorten(view.program, space) if space >= 12 else ""
    return Text.assemble((f"{program}  " if program else "", "dim"), (told, "bold"))


def _steps(report: Report) -> str:
    """What the verdict is about, in the steps of the run."""
    return text.plural(report.steps, "tick" if report.steps_from == "time" else "step")


def history(view: Glimpse, width: int, height: int) -> Text:
    """Memory over the steps: what is in use, and what is resident."""
    curves = [
        ("in use", "green", [(p.at, float(p.in_use)) for p in view.points if p.in_use is not None]),
        (
            "resident",
            "blue",
            [(p.at, float(p.resident)) for p in view.points if p.resident is not None],
        ),
    ]
    drawn = [curve for curve in curves if curve[2]]
    if not drawn:
        return Text("nothing read yet", "dim")
    each = max((height - 1) // len(drawn) - 1, 1)
    lines: list[Text] = []
    for name, look, values in drawn:
        now = text.size(values[-1][1])
        change = text.signed_size(values[-1][1] - values[0][1])
        lines.append(
            Text.assemble((name, f"bold {look}"), f" {now}  ", (f"{change} so far", "dim"))
        )
        lines += [Text(row, look) for row in plot(values, width, each)]
    lines.append(Text(_axis(view, width), "dim"))
    return Text("\n").join(line[:width] for line in lines)


def _axis(view: Glimpse, width: int) -> str:
    first, last = view.points[0].at, view.points[-1].at
    if view.is_by_steps:
        left, right = f"step {text.count(first)}", f"step {text.count(last)}"
    else:
        left, right = text.duration(round(first, 1)), text.duration(round(last, 1))
    return f"{left}{right:>{max(width - len(left), 1)}}"


def memory(view: Glimpse, width: int, height: int) -> Text:
    """What the memory of the program consists of now."""
    if not view.parts:
        return Text("seen from outside only: what it consists of is not known", "dim")
    parts = sorted(view.parts.items(), key=lambda part: -part[1])
    total = sum(view.parts.values())
    sizes = [text.size(size) for _, size in parts]
    column = max(map(len, sizes))
    names = max(min(max(len(name) for name, _ in parts), width - column - _BAR_CELLS - 2), 10)
    bar = max(min(width - names - column - 2, _BAR_CELLS), 0)
    lines = []
    for (name, size), told in zip(parts, sizes, strict=True):
        halves = max(round(2 * bar * size / total), 1) if bar else 0
        filled = "█" * (halves // 2) + "▌" * (halves % 2)
        start = f"{text.shorten(name, names):<{names}} {told:>{column}}"
        lines.append(Text.assemble(start, " " if bar else "", (filled, "blue")))
    return Text("\n").join(lines)


def members(view: Glimpse, width: int, height: int) -> Text:
    """The process tree with resident memory, and what of it is private."""
    if not view.members:
        return Text("none seen yet", "dim")
    shown = view.members[:_MEMBERS_SHOWN]
    lines = [_member(one, width) for one in shown]
    if not all(one.is_followed for one in shown):
        lines.append(Text("* seen from outside only", "dim"))
    if more := len(view.members) - len(shown):
        lines.append(Text(f"and {text.plural(more, 'process', 'processes')} more", "dim"))
    return Text("\n").join(lines)


def _member(one: Member, width: int) -> Text:
    name = f"{'  ' * one.depth}{one.name}{'' if one.is_followed else ' *'}"
    told = f"{one.pid}  {one.end}" if one.end else f"{one.pid}"
    if not one.end and one.resident is not None:
        told += f"  {text.size(one.resident)}"
        private = f" ({text.size(one.private)} private)" if one.private is not None else ""
        if len(name) + len(told) + len(private) < width:
            told += private
    space = max(width - len(told) - 1, 4)
    look = "dim" if one.end else ""
    return Text(f"{text.shorten(name, space):<{space}} {told}", look)


def findings(view: Glimpse, width: int, height: int) -> Text:
    """What keeps the memory, as far as it is known."""
    report = view.report
    if report is None:
        return Text("none yet", "dim")
    found = sentences.findings(report)
    if not found:
        none = sentences.no_line_named(report) or "none: nothing grows that would need one"
        if report.verdict is Outcome.UNKNOWN:
            none = "none yet"
        return Text(none, "dim")
    return Text("\n\n").join(_finding(report, one) for one in found)


def _finding(report: Report, finding: Finding) -> Text:
    account = sentences.finding_account(report, finding, is_first=False)
    lines = [
        Text.assemble((sentences.finding_title(finding), "bold red")),
        Text(" · ".join(account)),
        Text(text.clean(finding.says).strip()),
    ]
    for label, site in (("made at", finding.site), ("kept by", finding.keeper)):
        if site is not None:
            place = sentences.place(site, has_function=False)
            code = sentences.source(site)
            lines.append(Text.assemble((f"{label}  ", "dim"), f"{place}  ", (code, "bold")))
    if finding.fix is not None and (advice := text.clean(finding.fix.text).strip()):
        lines.append(Text.assemble(("fix      ", "dim"), (advice, "green")))
    return Text("\n").join(lines)


PANELS: dict[str, tuple[str, Draw]] = {
    "history": ("memory", history),
    "parts": ("what it consists of now", memory),
    "findings": ("findings", findings),
    "members": ("processes", members),
}
"""The boxes of the view, by the name each has on the screen."""


def plain(view: Glimpse, width: int) -> str:
    """The whole view once, for a pipe or a terminal that cannot move its cursor."""
    page = Page(Style(width=width))
    for title, draw in (("", headline), *PANELS.values()):
        page.blank()
        if title:
            page.line(Text(title))
        for line in draw(view, width, 14).plain.split("\n"):
            page.line(Text(line))
    return str(page)
