"""Report → GitHub-flavoured Markdown, for pasting into an issue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leakscope import text
from leakscope.model import Finding, Outcome, Report, Site, TraceLine
from leakscope.render import family, sentences, trace
from leakscope.render.markdown import code as _code
from leakscope.render.markdown import escaped as _escaped
from leakscope.render.markdown import fenced as _fenced
from leakscope.render.markdown import table as _table
from leakscope.render.page import Page
from leakscope.render.style import WIDEST, Style


def render(report: Report, style: Style) -> str:
    """The report as Markdown. Foreign strings are escaped: they are text, never layout."""
    blocks = [
        *_headline(report),
        *(
            block
            for number, finding in enumerate(sentences.findings(report), 1)
            for block in _finding(report, finding, number)
        ),
        *_not_explained(report),
        *_series(report),
        *_peak(report),
        *_job(report),
        *_processes(report),
        *_listed(
            "Notes",
            (
                _escaped(text.sentence(note))
                for note in (*sentences.harmless(report), *report.notes)
            ),
        ),
        *_listed(
            "Blind spots",
            (_escaped(f"{what}: {why}") for what, why in sentences.blind_spots(report)),
        ),
        *_machine(report),
        f"<sub>Watching cost {_escaped(sentences.cost(report))}. "
        f"leakscope {_escaped(text.clean(report.leakscope)) or text.UNKNOWN}, "
        f"run {_code(text.clean(report.run))}, "
        f"started {text.moment(report.started_wall_ns)}.</sub>",
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _headline(report: Report) -> Iterable[str]:
    word = report.verdict.value.upper()
    yield f"## {word}: {_escaped(text.sentence(report.because))}"
    facts = []
    if report.command:
        facts.append(("program", _code(text.command_line(report.command))))
    facts.append(("steps", _escaped(sentences.steps(report))))
    if ahead := sentences.forecast(report):
        facts.append(("forecast", _escaped(ahead)))
    if report.verdict is Outcome.STEADY and (smallest := sentences.smallest_visible(report)):
        facts.append(("smallest leak this run could have shown", _escaped(smallest)))
    if ended := sentences.ending(report):
        facts.append(("ended", _escaped(ended)))
    yield "\n".join(f"- **{label}:** {words}" for label, words in facts)


def _finding(report: Report, finding: Finding, number: int) -> Iterable[str]:
    count = f"{number}. " if len(report.findings) > 1 else ""
    yield f"### {count}{_escaped(sentences.finding_title(finding))}"
    account = sentences.finding_account(report, finding, is_first=number == 1)
    yield f"**{_escaped(' · '.join(account))}**"
    yield _escaped(text.sentence(finding.says))
    if lines := sentences.trace(finding):
        yield _trace(lines)
    facts = []
    if finding.site is not None:
        facts.append(("made at", _place(finding.site)))
    if finding.keeper is not None:
        facts.append(("kept by", _place(finding.keeper)))
    if finding.fix is not None:
        facts.append(("fix", _escaped(text.clean(finding.fix.text).strip())))
    if known := sentences.known_at(finding):
        facts.append(("known", _code(known)))
    if names := sentences.finding_processes(report, finding):
        facts.append(("in", _escaped(names)))
    yield "\n".join(f"- **{label}:** {words}" for label, words in facts)
    if finding.fix is not None and finding.fix.diff:
        yield _fenced((text.clean(line) for line in finding.fix.diff.splitlines()), "diff")


def _trace(lines: Sequence[TraceLine]) -> str:
    """As in the terminal: a box drawing needs columns, which only a code block has."""
    page = Page(Style(width=WIDEST))
    trace.draw(page, lines)
    return _fenced(line.removeprefix("  ") for line in str(page).rstrip("\n").split("\n"))


def _place(site: Site) -> str:
    place = _code(f"{text.clean(site.file)}:{site.line}")
    if site.function and site.function.strip():
        place += f" in {_code(text.clean(site.function).strip())}"
    if source := sentences.source(site):
        place += f": {_code(source)}"
    return place


def _not_explained(report: Report) -> Iterable[str]:
    if says := sentences.no_line_named(report):
        yield _escaped(says)
    if rest := sentences.unexplained(report):
        yield f"**Not explained:** {_escaped(rest)}"


def _series(report: Report) -> Iterable[str]:
    if not report.verdicts:
        return
    has_processes = len(report.processes) > 1
    rows = []
    for verdict in sentences.by_severity(report.verdicts):
        per_step = verdict.bytes_per_step
        rows.append(
            [
                *([sentences.process_name(report, verdict.series.process)] * has_processes),
                sentences.metric_name(verdict.series),
                verdict.outcome.value.upper(),
                verdict.shape.value,
                text.rate(per_step.value, verdict.unit),
                text.rate_between(per_step.low, per_step.high, verdict.unit),
                f"{text.quantity(verdict.smallest_visible_bytes_per_step, verdict.unit)}/step",
            ]
        )
    headers = ["series", "verdict", "shape", "rate", "between", "smallest visible"]
    yield _table(["process"] * has_processes + headers, rows, right=3)


def _peak(report: Report) -> Iterable[str]:
    peak = report.peak
    if peak is None:
        return
    step = "" if peak.at_step is None else f" at step {text.count(peak.at_step)}"
    yield f"**Peak{step}:** {_escaped(sentences.peak(peak))}"
    if peak.parts:
        parts = sorted(peak.parts.items(), key=lambda part: -part[1])
        total = peak.total_bytes
        yield _table(
            ["part", "size", "share"],
            [
                [text.clean(name), text.size(n), text.percent(n / total) if total > 0 else ""]
                for name, n in parts
            ],
            right=2,
        )


def _processes(report: Report) -> Iterable[str]:
    if len(report.processes) < 2:
        return
    table = family.process_table(report.processes)
    yield _table(table.headers, table.rows)
    if not all(process.is_followed for process in report.processes):
        yield _escaped("* seen from outside only")
    if said := family.together(report.processes):
        yield _escaped(text.sentence(said))


def _job(report: Report) -> Iterable[str]:
    if report.job is None:
        return
    yield f"**Ranks:** {_escaped(text.sentence(report.job.says))}"
    table = family.rank_table(report.job.ranks)
    yield _table(table.headers, table.rows)
    if report.job.band:
        yield f"{_escaped(text.metric(report.job.band_metric))}, over the ranks:"
        table = family.band_table(report.job.band)
        yield _table(table.headers, table.rows)


def _machine(report: Report) -> Iterable[str]:
    machine = report.machine
    facts = [text.clean(machine.system), f"Python {text.clean(machine.python)}"]
    facts += [text.clean(fact) for fact in (machine.libc, machine.allocator) if fact]
    facts += [f"{name}={value}" for name, value in sorted(machine.allocator_settings.items())]
    if machine.ram_bytes is not None:
        facts.append(f"{text.size(machine.ram_bytes)} RAM")
    if machine.limit_bytes is not None and machine.limit_bytes != machine.ram_bytes:
        facts.append(f"{machine.limit_from or 'limit'} {text.size(machine.limit_bytes)}")
    facts += machine.accelerators
    facts += [f"{name} {version}" for name, version in sorted(machine.packages.items())]
    yield f"**Machine:** {_escaped(', '.join(text.clean(fact) for fact in facts))}"


def _listed(title: str, items: Iterable[str]) -> Iterable[str]:
    lines = [f"- {item}" for item in items if item]
    if lines:
        yield f"**{title}**"
        yield "\n".join(lines)
