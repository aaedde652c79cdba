"""The whole reading half on one screen: a recording in, a report out."""

from __future__ import annotations

from typing import NamedTuple

from leakscope.attribute.decided import decide
from leakscope.attribute.growth import Attribution, attribute, prove
from leakscope.attribute.suspects import sources_for
from leakscope.explain.catalogue import harmless_in, load_catalogue
from leakscope.explain.findings import Scene, findings_of, unexplained_of
from leakscope.explain.rule import RunCase
from leakscope.fix.edits import Change
from leakscope.fix.findings import Fixed, with_diffs
from leakscope.judge.forecast import forecast
from leakscope.judge.overall import judge_run
from leakscope.judge.series import RunSeries
from leakscope.model import REPORT_SCHEMA, Finding, Gap, Report
from leakscope.record.reader import Recording, load
from leakscope.summarise.black_boxes import full_moments
from leakscope.summarise.devices import devices_of
from leakscope.summarise.facts import (
    blind_spots_of,
    cost_of,
    devices_now,
    ending_of,
    machine_of,
    memory_now,
    seconds_of,
)
from leakscope.summarise.notes import notes_on
from leakscope.summarise.peak import peak_of, roles_of
from leakscope.summarise.processes import name_processes, summarise_processes, with_name

__all__ = ["Analysis", "analyse", "analyse_with_changes", "load"]


class Analysis(NamedTuple):
    """A report, and what the diffs in it do to the program's files."""

    report: Report
    changes: dict[str, Change]


def analyse(recording: Recording) -> Report:
    """Say whether the run leaks, how fast, when it ends badly, and what could not be seen."""
    return analyse_with_changes(recording).report


def analyse_with_changes(recording: Recording) -> Analysis:
    run = RunSeries(recording)
    machine = machine_of(recording)
    names = name_processes(recording)
    judged = judge_run(run, machine.limit_bytes, names)
    decided = decide(judged, recording, run.axis.last_step)
    attribution = attribute(recording, decided, is_by_holders=decided is not judged)
    overall = prove(decided, attribution)
    now = memory_now(recording)
    when = forecast(overall, now, devices_now(recording), run.axis)
    kinds = {process: start.kind for process, start in recording.starts.items()}
    sources = sources_for(recording, run.axis.process or "")
    scene = Scene(names, kinds, run.axis.source, recording.run.directory, sources, machine)
    gaps: list[Gap] = []
    fixed = _fixed(findings_of(attribution, scene, gaps), attribution, recording, gaps)
    suspects = tuple(one for each in attribution.explained.values() for one in each.suspects)
    roles = roles_of(run, run.axis.process or "")
    harmless = harmless_in(RunCase(run, overall, suspects, roles), gaps)
    verdicts = tuple(with_name(verdict, names) for verdict in overall.verdicts)
    report = Report(
        schema=REPORT_SCHEMA,
        run=recording.run.id,
        command=recording.run.command,
        verdict=overall.outcome,
        because=overall.because,
        steps=run.axis.last_step,
        steps_from=run.axis.source,
        step_seconds=run.axis.step_seconds,
        seconds=seconds_of(recording),
        verdicts=verdicts,
        findings=fixed.findings,
        unexplained=unexplained_of(attribution, names),
        blind_spots=blind_spots_of(recording, (*load_catalogue().gaps, *gaps)),
        forecast=when,
        peak=peak_of(run),
        notes=notes_on(run, overall, names),
        processes=summarise_processes(recording, run, names),
        ending=ending_of(recording, run),
        machine=machine,
        cost=cost_of(recording),
        started_wall_ns=recording.run.started_wall_ns,
        leakscope=recording.run.leakscope,
        harmless=harmless,
        devices=devices_of(run, names),
        black_boxes=full_moments(recording, names),
    )
    return Analysis(report, fixed.changes)


def _fixed(
    findings: tuple[Finding, ...],
    attribution: Attribution,
    recording: Recording,
    gaps: list[Gap],
) -> Fixed:
    suspects = [
        (suspect, sources_for(recording, explained.process))
        for explained in attribution.explained.values()
        for suspect in explained.suspects
    ]
    return with_diffs(findings, suspects, recording.run.directory, gaps)
