"""Report → what a person reads in the terminal: the answer first, then why, then the rest."""

from __future__ import annotations

import math

from rich.cells import cell_len
from rich.text import Text

from leakscope import text
from leakscope.model import Finding, Job, Outcome, Peak, ProcessSummary, Report, Verdict
from leakscope.render import family, sentences, trace
from leakscope.render.page import Page
from leakscope.render.style import Style

_LOOKS = {
    Outcome.LEAK: "bold red",
    Outcome.GROWING: "bold yellow",
    Outcome.STEADY: "bold green",
    Outcome.UNKNOWN: "bold cyan",
}

# A 64-rank job has hundreds of series; a screen has forty lines. JSON lists everything.
_SERIES_SHOWN = 12
_PROCESSES_SHOWN = 12
_RANKS_SHOWN = 8
_PARTS_SHOWN = 8
_GAPS_SHOWN = 6

_LABEL_WIDTH = 12
_BAR_CELLS = 24


def render(report: Report, style: Style) -> str:
    """The report for a person, no line wider than the style allows."""
    page = Page(style)
    _headline(page, report)
    for number, finding in enumerate(sentences.findings(report), 1):
        page.blank()
        _finding(page, report, finding, number)
    _not_explained(page, report)
    _series(page, report)
    if report.peak is not None:
        _peak(page, report.peak)
    if report.job is not None:
        _job(page, report.job)
    if len(report.processes) > 1:
        _processes(page, report.processes)
    page.blank()
    _notes(page, report)
    _blind_spots(page, report)
    _footer(page, report, style)
    return str(page)


def one_line(report: Report) -> str:
    """The report in one line, for `--quiet` and for logs."""
    return sentences.one_line(report)


def _headline(page: Page, report: Report) -> None:
    word = page.text(report.verdict.value.upper(), _LOOKS[report.verdict])
    page.hang(
        Text.assemble(word, "  "),
        page.text(text.sentence(report.because) or text.UNKNOWN, "bold"),
    )
    if report.command:
        _labelled(page, "program", text.command_line(report.command))
    _labelled(page, "steps", sentences.steps(report))
    if ahead := sentences.forecast(report):
        _labelled(page, "forecast", ahead, "yellow")
    smallest = sentences.smallest_visible(report)
    if report.verdict is Outcome.STEADY and smallest:
        _labelled(page, "visible", f"the smallest leak this run could have shown: {smallest}")
    if ended := sentences.ending(report):
        _labelled(page, "ended", ended, "red")


def _listed(page: Page, label: str, items: list[Text]) -> None:
    for index, item in enumerate(items):
        name = label if index == 0 else ""
        bullet = page.text("· " if len(items) > 1 else "")
        page.hang(Text.assemble(page.text(f"  {name:<{_LABEL_WIDTH}}", "dim"), bullet), item)


def _labelled(page: Page, label: str, words: str, look: str = "") -> None:
    page.hang(page.text(f"  {label:<{_LABEL_WIDTH}}", "dim"), page.text(words, look))


def _finding(page: Page, report: Report, finding: Finding, number: int) -> None:
    account = sentences.finding_account(report, finding, is_first=number == 1)
    title = page.text(sentences.finding_title(finding), "bold red")
    if len(report.findings) > 1:
        title = Text.assemble(page.text(f"{number}. ", "bold"), title)
    page.spread(title, *(page.text(part) for part in account))
    page.line(page.text(text.clean(finding.says).strip()), indent=2)
    trace.draw(page, sentences.trace(finding))
    if finding.site is not None:
        _located(page, "made at", sentences.place(finding.site), sentences.source(finding.site))
    if finding.keeper is not None:
        code = sentences.source(finding.keeper)
        where = sentences.place(finding.keeper, has_function=not code)
        _located(page, "kept by", where, code)
    if finding.fix is not None:
        _labelled(page, "fix", text.clean(finding.fix.text).strip(), "green")
        _diff(page, finding.fix.diff or "")
    if known := sentences.known_at(finding):
        _labelled(page, "known", known)
    if names := sentences.finding_processes(report, finding):
        _labelled(page, "in", names)


def _located(page: Page, label: str, where: str, source: str) -> None:
    """A place and its line of source, beside each other or one under the other."""
    start = page.text(f"  {label:<{_LABEL_WIDTH}}", "dim")
    place, code = page.text(where), page.text(source, "bold")
    if page.fits(start, place, Text("   "), code):
        page.hang(start, Text.assemble(place, "   ", code) if source else place)
        return
    page.hang(start, place)
    page.line(code, indent=start.cell_len)


def _diff(page: Page, diff: str) -> None:
    for line in diff.splitlines():
        look = {"+": "green", "-": "red"}.get(line[:1], "dim")
        page.line(page.text(text.clean(line), look), indent=2 + _LABEL_WIDTH)


def _not_explained(page: Page, report: Report) -> None:
    if says := sentences.no_line_named(report):
        page.blank()
        page.line(page.text(says))
    if rest := sentences.unexplained(report):
        page.blank()
        page.line(page.text(f"not explained: {rest}"), indent=2)


def _series(page: Page, report: Report) -> None:
    if not report.verdicts:
        return
    ranked = sentences.by_severity(report.verdicts)
    shown, hidden = ranked[:_SERIES_SHOWN], ranked[_SERIES_SHOWN:]
    groups: dict[str, list[Verdict]] = {}
    for verdict in shown:
        groups.setdefault(verdict.series.process, []).append(verdict)
    page.blank()
    headers = ("series", "verdict", "shape", "per step", "between", "visible")
    rows = {process: [_row(page, v) for v in some] for process, some in groups.items()}
    widths = page.column_widths(headers, [row for some in rows.values() for row in some])
    page.table(headers, [], right=(3, 4, 5), spare=(4, 5), widths=widths)
    for process, some in rows.items():
        if len(groups) > 1:
            page.line(page.text(sentences.process_name(report, process), "bold"))
        page.table(headers, some, right=(3, 4, 5), spare=(4, 5), has_head=False, widths=widths)
    if hidden:
        page.line(page.text(_hidden_series(hidden), "dim"), indent=2)


def _row(page: Page, verdict: Verdict) -> list[Text]:
    per_step = verdict.bytes_per_step
    unit = "bytes" if verdict.unit == "bytes" else "count"  # the series' name says of what
    return [
        page.text(sentences.metric_name(verdict.series)),
        page.text(verdict.outcome.value.upper(), _LOOKS[verdict.outcome]),
        page.text(verdict.shape.value),
        page.text(text.rate(per_step.value, unit).removesuffix("/step")),
        page.text(text.rate_between(per_step.low, per_step.high, unit).removesuffix("/step")),
        page.text(text.quantity(verdict.smallest_visible_bytes_per_step, unit)),
    ]


def _hidden_series(hidden: list[Verdict]) -> str:
    counts = [
        f"{text.count(n)} {outcome.value}"
        for outcome in Outcome
        if (n := sum(v.outcome is outcome for v in hidden))
    ]
    return f"and {text.plural(len(hidden), 'series', 'series')} more: {', '.join(counts)}"


def _peak(page: Page, peak: Peak) -> None:
    page.blank()
    title = "Peak" if peak.at_step is None else f"Peak at step {text.count(peak.at_step)}"
    says = page.text(sentences.peak(peak))
    page.line(Text.assemble(page.text(title, "bold"), "  ", says))
    parts = sorted(peak.parts.items(), key=lambda part: -part[1])
    shown, rest = parts[:_PARTS_SHOWN], parts[_PARTS_SHOWN:]
    if rest:
        shown.append((f"{text.plural(len(rest), 'part')} more", sum(size for _, size in rest)))
    largest = max((size for _, size in shown), default=0)
    longest = max((cell_len(name) for name, _ in shown), default=0)
    cells = max(min(_BAR_CELLS, page.width - longest - 25), 4)
    rows = []
    for name, size in shown:
        share = size / peak.total_bytes if peak.total_bytes > 0 else math.nan
        rows.append(
            [
                page.text(text.clean(name)),
                page.text(text.size(size)),
                page.text(text.percent(share) if math.isfinite(share) else ""),
                page.text(_bar(size, largest, cells), "blue"),
            ]
        )
    if rows:
        page.table(("", "", "", ""), rows, right=(1, 2), spare=(3,), has_head=False)


def _bar(size: int, largest: int, cells: int) -> str:
    if size <= 0 or largest <= 0:
        return ""
    halves = max(round(2 * cells * (size / largest)), 1)
    return "█" * (halves // 2) + "▌" * (halves % 2)


def _notes(page: Page, report: Report) -> None:
    said = (*sentences.harmless(report), *report.notes)
    notes = [page.text(line) for note in said if (line := text.sentence(note))]
    _listed(page, "notes", notes)


def _processes(page: Page, processes: tuple[ProcessSummary, ...]) -> None:
    page.blank()
    shown = processes[:_PROCESSES_SHOWN]
    _table(page, family.process_table(shown))
    if not all(process.is_followed for process in shown):
        page.line(page.text("* seen from outside only", "dim"), indent=2)
    if len(processes) > _PROCESSES_SHOWN:
        more = text.plural(len(processes) - _PROCESSES_SHOWN, "process", "processes")
        page.line(page.text(f"and {more} more", "dim"), indent=2)
    if said := family.together(processes):
        page.line(page.text(said, "dim"), indent=2)


def _job(page: Page, job: Job) -> None:
    page.blank()
    page.hang(page.text("Ranks  ", "bold"), page.text(text.clean(job.says).strip() or text.UNKNOWN))
    shown = family.ranks_to_show(job, _RANKS_SHOWN)
    _table(page, family.rank_table(shown))
    if len(job.ranks) > len(shown):
        page.line(page.text(f"and {len(job.ranks) - len(shown)} more", "dim"), indent=2)
    if job.band:
        page.blank()
        page.line(page.text(f"{text.metric(job.band_metric)}, over the ranks", "dim"), indent=2)
        _table(page, family.band_table(job.band))


def _table(page: Page, table: family.Table) -> None:
    rows = [[page.text(cell) for cell in row] for row in table.rows]
    page.table(table.headers, rows, right=table.right, spare=table.spare)


def _blind_spots(page: Page, report: Report) -> None:
    spots = sentences.blind_spots(report)
    items = [page.text(f"{what}: {why}") for what, why in spots[:_GAPS_SHOWN]]
    if len(spots) > _GAPS_SHOWN:
        items.append(page.text(f"and {len(spots) - _GAPS_SHOWN} more", "dim"))
    _listed(page, "blind spots", items)


def _footer(page: Page, report: Report, style: Style) -> None:
    _labelled(page, "cost", sentences.cost(report), "dim")
    commands = sentences.next_commands(report, style.recording)
    column = max(len(command) for command, _ in commands)
    label = page.text(f"  {'next':<{_LABEL_WIDTH}}", "dim")
    if not page.fits(label, indent=column):  # a command is easiest to copy from one line
        page.line(label)
        label = Text("    ")
    for index, (command, purpose) in enumerate(commands):
        start = label if index == 0 else Text(" " * label.cell_len)
        typed = page.text(f"{command:<{column}}")
        aside = page.text(f"   {purpose}", "dim")
        is_wide = page.fits(start, typed, aside)
        page.hang(start, Text.assemble(typed, aside) if is_wide else page.text(command))
