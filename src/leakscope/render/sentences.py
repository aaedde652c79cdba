"""What a report says, sentence by sentence, before anybody lays it out.

The renderers for people share these, so that the terminal and a pasted issue never
disagree. Every string that leaves this file is clean: one line, nothing that could
drive a terminal.
"""

from __future__ import annotations

import math

from leakscope import text
from leakscope.model import (
    DeviceLevels,
    Finding,
    FullMoment,
    Occupied,
    Outcome,
    Peak,
    ProcessSummary,
    Report,
    SeriesKey,
    Site,
    TraceLine,
    Verdict,
)

_SEVERITY = {Outcome.LEAK: 0, Outcome.GROWING: 1, Outcome.UNKNOWN: 2, Outcome.STEADY: 3}

_STEPS_FROM = {
    "optimizer": "counted at the optimizer",
    "batch": "counted at the batches of Keras",
    "call": "counted at the calls of tf.function",
    "forward": "counted at the outermost module call",
    "dataloader": "counted at the data loader",
    "fetch": "counted at the workers' fetches",
    "api": "counted by leakscope.step()",
    "time": "counted by the clock, because no others were seen",
}

_BLAME = {
    "your-code": "your code",
    "library": "a library",
    "allocator": "the allocator",
    "nobody": "nobody",
}


def one_line(report: Report) -> str:
    """The report in one line, for `--quiet` and for logs."""
    parts = [f"leakscope: {report.verdict.value.upper()}"]
    worst = headline_verdict(report)
    if worst is not None and is_growth(report.verdict):
        parts.append(f"{text.rate(worst.bytes_per_step.value, worst.unit)}")
        parts.append(f"({series_name(report, worst.series)})")
    parts.append(f"over {text.plural(report.steps, 'step')}")
    line = " ".join(parts)
    if is_growth(report.verdict) and report.findings:
        line += f"; {finding_title(findings(report)[0])}"
    if report.verdict is Outcome.STEADY and (smallest := smallest_visible(report)):
        line += f"; smallest leak it could have shown {smallest}"
    if report.verdict is Outcome.UNKNOWN:
        line += f": {text.clean(report.because).strip()}"
    if is_growth(report.verdict) and (ahead := forecast(report)):
        line += f"; {ahead}"
    if ended := ending(report):
        line += f"; {ended}"
    return line


def steps(report: Report) -> str:
    """How many steps, who counted them, how long they took."""
    source = _STEPS_FROM.get(report.steps_from)
    if source is None:
        source = f"counted by {text.clean(report.steps_from).strip() or text.UNKNOWN}"
    line = f"{text.plural(report.steps, 'step')}, {source}"
    if report.step_seconds is not None:
        line += f" · {text.duration(report.step_seconds)} each"
    return f"{line} · {text.duration(report.seconds)} in all"


def forecast(report: Report) -> str | None:
    """When the limit is reached, or None if nothing heads for it."""
    ahead = report.forecast
    if ahead is None:
        return None
    if said := text.clean(ahead.says).strip():
        return said
    limit, size = text.clean(ahead.limit_from), text.size(ahead.limit_bytes)
    reached = f"{limit}, {size}," if " of " in limit else f"{limit} of {size}"
    line = f"reaches the {reached} at step {text.about(ahead.at_step)}"
    left = ahead.seconds_left
    if left is not None:
        line += f", in {text.duration(left.value)}"
        if math.isfinite(left.low) and math.isfinite(left.high):
            line += f" (between {text.duration(left.low)} and {text.duration(left.high)})"
        elif math.isfinite(left.low):
            line += f" (not before {text.duration(left.low)})"
    return line


def ending(report: Report) -> str | None:
    """How the program ended, or None if it simply finished."""
    end = report.ending
    if end.exit_code == 0 and end.signal is None:
        return None
    if said := text.clean(end.says).strip():
        return said
    if end.signal is not None:
        return f"killed by {text.signal_name(end.signal)}"
    if end.exit_code is not None:
        return f"ended with exit code {end.exit_code}"
    return "its end was not seen"


def smallest_visible(report: Report) -> str | None:
    """The smallest leak that would have been seen wherever it had happened.

    Each process (and each device) is as sharp as the series that decided for it, which comes
    first; the run is as sharp as its dullest process, which is named where there is a choice.
    A counter that claims to see everything (0) proves nothing and is passed over.
    """
    deciding: dict[tuple[str, str | None], Verdict] = {}
    for verdict in report.verdicts:
        visible = verdict.smallest_visible_bytes_per_step
        if verdict.unit == "bytes" and math.isfinite(visible) and visible > 0:
            deciding.setdefault((verdict.series.process, verdict.series.device), verdict)
    if not deciding:
        return None
    dullest = max(deciding.values(), key=lambda v: v.smallest_visible_bytes_per_step)
    size = f"{text.size(dullest.smallest_visible_bytes_per_step)}/step"
    return f"{size} ({series_name(report, dullest.series)})" if len(deciding) > 1 else size


def no_line_named(report: Report) -> str | None:
    """Said when the run grows and nothing explains it: no answer is better than a wrong one."""
    if report.findings or not is_growth(report.verdict):
        return None
    return (
        "No line is named: nothing that was looked at keeps more with every step. "
        "A longer run gets more looks."
    )


def unexplained(report: Report) -> str | None:
    """Growth that no finding accounts for; not said while there are no findings at all."""
    rest = sum(grown for grown in report.unexplained.values() if _is_positive(grown))
    if not report.findings or not _is_positive(rest):
        return None
    told = sum(f.bytes_per_step for f in report.findings if _is_positive(f.bytes_per_step))
    share = rest / (rest + told)
    return f"{text.size(rest)}/step" + (f" ({text.percent(share)})" if share > 0 else "")


def _is_positive(value: float) -> bool:
    return math.isfinite(value) and value > 0


def findings(report: Report) -> list[Finding]:
    """The findings, the largest share of the growth first."""
    return sorted(report.findings, key=lambda f: -f.share if math.isfinite(f.share) else math.inf)


def finding_title(finding: Finding) -> str:
    return f"{text.clean(finding.rule)} {text.clean(finding.name)}".strip() or "a finding"


_SURE = 0.9
"""From here on doubt is not worth a word."""


def known_at(finding: Finding) -> str:
    """Where to read about what a library is known to keep."""
    known = text.clean(finding.known).strip()
    return f"docs/known.md#{known}" if known else ""


def finding_account(report: Report, finding: Finding, *, is_first: bool) -> list[str]:
    """Who is to blame, how much, and when it ends badly: that is said once, with the largest."""
    parts = [_BLAME.get(finding.blame, text.clean(finding.blame).strip() or text.UNKNOWN)]
    parts.append(text.rate(finding.bytes_per_step))
    parts.append(f"{text.percent(finding.share)} of the growth")
    if not finding.certainty >= _SURE:
        parts.append(f"{text.percent(finding.certainty)} sure")
    if is_first and report.forecast is not None:
        end = f"OOM at step {text.about(report.forecast.at_step)}"
        left = report.forecast.seconds_left
        parts.append(end if left is None else f"{end} ({text.duration(left.value)})")
    return parts


def annotation(report: Report, finding: Finding) -> str:
    """A finding in one line, for a place where its rule and its line are already told."""
    account = finding_account(report, finding, is_first=finding is findings(report)[0])
    parts = [f"{text.clean(finding.says).strip()} ({', '.join(account[1:])})"]
    if finding.fix is not None and (advice := text.clean(finding.fix.text).strip()):
        parts.append(f"fix: {advice}")
    return "; ".join(parts)


def trace(finding: Finding) -> list[TraceLine]:
    """The path from a root to what is kept, clean; from the plain path where there is no other."""
    lines = finding.trace or tuple(
        _trace_line(link, is_inner=0 < index < len(finding.holder) - 1)
        for index, link in enumerate(finding.holder)
    )
    clean = [
        TraceLine(
            text.clean(line.via).strip(),
            text.clean(line.what).strip(),
            text.clean(line.note).strip(),
            line.is_suspect,
        )
        for line in lines
    ]
    return [line for line in clean if line.via or line.what or line.note]


def _trace_line(link: str, *, is_inner: bool) -> TraceLine:
    """`.losses list, 412 items` → the reference and what it leads to; roots stay whole."""
    words = text.clean(link).strip()
    if words[:1] not in {".", "["}:
        return TraceLine(words, "")
    via, _, what = words.partition(" ")
    return TraceLine(via, what, is_suspect=is_inner and "/step" in what)


def place(site: Site, *, has_function: bool = True) -> str:
    """`train.py:57 in training_step`."""
    spot = f"{text.clean(site.file)}:{site.line}"
    function = text.clean(site.function).strip() if site.function else ""
    return f"{spot} in {function}" if function and has_function else spot


def source(site: Site) -> str:
    return text.clean(site.source).strip() if site.source else ""


_PROCESSES_SHOWN = 8


def finding_processes(report: Report, finding: Finding) -> str | None:
    """Where it happens, unless that is the main process alone."""
    names = list(dict.fromkeys(process_name(report, process) for process in finding.processes))
    if len(report.processes) < 2 or all(_is_main(report, name) for name in names):
        return None
    shown = ", ".join(names[:_PROCESSES_SHOWN])
    more = len(names) - _PROCESSES_SHOWN
    shown += f" and {text.count(more)} more" if more > 0 else ""
    kinds = {p.kind for p in report.processes if process_name(report, p.process) in names}
    if len(names) > 1 and len(kinds) == 1 and (kind := _MANY.get(kinds.pop())):
        return f"×{len(names)} {kind}: {shown}"
    return shown


_MANY = {"worker": "workers", "rank": "ranks", "child": "child processes"}


def _is_main(report: Report, name: str) -> bool:
    kinds = [p.kind for p in report.processes if process_name(report, p.process) == name]
    return "main" in (kinds or [name])


def peak(highest: Peak) -> str:
    """The size of the highest point, in the words of the analysis where it has any."""
    return text.clean(highest.says).strip() or text.size(highest.total_bytes)


def device_title(levels: DeviceLevels, *, is_one_of_many: bool) -> str:
    """`cuda:0 of worker 1, NVIDIA H200 with 140 GiB`."""
    title = text.clean(levels.device)
    if is_one_of_many:
        title += f" of {text.clean(levels.process)}"
    title += f", {text.clean(levels.name)}" if levels.name != levels.device else ""
    return title + (f" with {text.size(levels.total_bytes)}" if levels.total_bytes else "")


def occupied(one: Occupied) -> str:
    """What it is, who holds it, which line made it."""
    words = text.clean(one.role)
    if one.what:
        words += f": {text.count(one.count)} × {text.clean(one.what)}"
    if one.holder:
        words += f" · {text.clean(one.holder)}"
    if one.site is not None:
        made = "made in a compiled region called at" if one.is_compiled else "made at"
        words += f" · {made} {place(one.site)}"
        words += f"   {code}" if (code := source(one.site)) else ""
    return words


def contents_left(moment: FullMoment, shown: int) -> str:
    """What is not shown, and for how much of it all a tensor was found."""
    rest = moment.contents[shown:]
    words = []
    if rest:
        words.append(f"and {text.size(sum(one.bytes for one in rest))} in {len(rest)} more groups")
    if moment.matched_share is not None:
        words.append(f"a tensor was found for {text.percent(moment.matched_share)} of the bytes")
    return "; ".join(words)


def cost(report: Report) -> str:
    """What watching cost the run."""
    spent = report.cost
    pause = spent.longest_pause_seconds
    looks = f" (longest look {text.duration(pause)})" if pause else ""
    return (
        f"{text.percent(spent.agent_share)} of the run's time{looks}, "
        f"{text.duration(spent.supervisor_cpu_seconds)} of CPU beside it, "
        f"{text.size(spent.recording_bytes)} of disk"
    )


def blind_spots(report: Report) -> list[tuple[str, str]]:
    """What was not seen and why; the same gap in many processes is said once."""
    seen: dict[tuple[str, str], set[str]] = {}
    for gap in report.blind_spots:
        places = seen.setdefault((text.clean(gap.what).strip(), text.clean(gap.why).strip()), set())
        if gap.process is not None:
            places.add(process_name(report, gap.process))
    spots = []
    for (what, why), places in seen.items():
        where = ""
        if len(places) > 1:
            where = f" (in {text.plural(len(places), 'process', 'processes')})"
        elif places and len(report.processes) > 1:
            where = f" (in {places.pop()})"
        spots.append((what, why + where))
    return spots


def next_commands(report: Report, recording: str | None) -> list[tuple[str, str]]:
    """Commands to type next, each with what it is for."""
    run = text.command_line((recording or report.run or "RUN",))
    has_diff = any(one.fix is not None and one.fix.diff for one in report.findings)
    proof = (f"leakscope verify --before {run} --apply-fix", "to prove the change in a copy")
    return [
        *([proof] if has_diff else []),
        (f"leakscope report {run} -o report.html", "to look at it in a browser"),
        (f"leakscope report {run} --format markdown", "to paste into an issue"),
        (f"leakscope report {run} --format json", "for a program to read"),
    ]


def by_severity(verdicts: tuple[Verdict, ...]) -> list[Verdict]:
    """Growth first; otherwise in the order they were judged."""
    return sorted(verdicts, key=lambda v: _SEVERITY[v.outcome])


def headline_verdict(report: Report) -> Verdict | None:
    """The series behind the headline: the same outcome, bytes before counts."""
    same = [v for v in report.verdicts if v.outcome is report.verdict]
    return next((v for v in same if v.unit == "bytes"), same[0] if same else None)


def is_growth(outcome: Outcome) -> bool:
    return outcome in {Outcome.LEAK, Outcome.GROWING}


def series_name(report: Report, key: SeriesKey) -> str:
    """`C heap, in use`, with the process and the device where there is more than one."""
    name = metric_name(key)
    is_one_of_many = len(report.processes) > 1 and any(
        key.process in {process.process, process.name} for process in report.processes
    )
    return f"{name}, {process_name(report, key.process)}" if is_one_of_many else name


def metric_name(key: SeriesKey) -> str:
    name = text.metric(key.metric)
    return f"{name}, {text.clean(key.device)}" if key.device else name


def process_name(report: Report, process: str) -> str:
    for summary in report.processes:
        if summary.process == process:
            return text.clean(summary.name).strip() or text.clean(process)
    return text.clean(process)


def process_end(process: ProcessSummary) -> str:
    if process.signal is not None:
        return text.signal_name(process.signal).rpartition("(")[2].rstrip(")")
    if process.exit_code is not None:
        return f"exit {process.exit_code}"
    return "not seen"


def harmless(report: Report) -> tuple[str, ...]:
    """What looks like a leak and is none, each with the number of its rule."""
    return tuple(f"{one.says.rstrip('.')} ({one.rule} {one.name})" for one in report.harmless)
