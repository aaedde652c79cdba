"""The whole reading half on one screen: a recording in, a report out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from leakscope.attribute.growth import Attribution, attribute, with_block_sizes
from leakscope.attribute.suspects import sources_for
from leakscope.decide import decide
from leakscope.engines import Engine, here
from leakscope.explain.catalogue import harmless_in, load_catalogue
from leakscope.explain.findings import Scene, findings_of, unexplained_of
from leakscope.explain.rule import RunCase
from leakscope.fix.edits import Change
from leakscope.fix.findings import Fixed, with_diffs
from leakscope.heap.censuses import device_censuses
from leakscope.heap.evidence import evidence_of
from leakscope.judge.crowd import crowd_of
from leakscope.judge.forecast import forecast
from leakscope.judge.overall import Overall, judge_run
from leakscope.judge.series import RunSeries
from leakscope.model import (
    CLOCKS,
    REPORT_SCHEMA,
    BandPoint,
    Exhibit,
    Finding,
    Forecast,
    Gap,
    Report,
)
from leakscope.record.reader import Recording, load
from leakscope.summarise.black_boxes import full_moments
from leakscope.summarise.children import notes_on_children
from leakscope.summarise.devices import devices_of
from leakscope.summarise.facts import (
    blind_spots_of,
    cost_of,
    devices_now,
    ending_of,
    memory_now,
    seconds_of,
)
from leakscope.summarise.job import job_of
from leakscope.summarise.machine import machine_of
from leakscope.summarise.notes import notes_on
from leakscope.summarise.peak import peak_of, roles_of
from leakscope.summarise.picture import picture_of
from leakscope.summarise.processes import name_processes, summarise_processes, with_name

__all__ = ["Analysis", "analyse", "analyse_with_changes", "analyse_with_picture", "load"]


class Analysis(NamedTuple):
    """A report, and what the diffs in it do to the program's files."""

    report: Report
    changes: dict[str, Change]


Band = tuple[str, tuple[BandPoint, ...]]
"""Over ranks: which counter, and its quantiles."""


def analyse(
    recording: Recording,
    engine: Engine = here,
    make_band: Callable[[RunSeries], Band] | None = None,
) -> Report:
    """Say whether the run leaks, how fast, when it ends badly, and what could not be seen.

    Args:
        recording: what is to be reported on.
        engine: where processes are judged; the answer does not depend on it.
        make_band: makes the band over ranks from more rows than the recording has in memory.
    """
    return _examine(recording, engine, make_band).analysis.report


def analyse_with_changes(recording: Recording) -> Analysis:
    return _examine(recording).analysis


def analyse_with_picture(
    recording: Recording,
    engine: Engine = here,
    make_band: Callable[[RunSeries], Band] | None = None,
) -> Exhibit:
    """The same report, and what is drawn beside it."""
    seen = _examine(recording, engine, make_band)
    report = seen.analysis.report
    return Exhibit(report, picture_of(seen.run, seen.attribution, seen.names, report))


class _Examination(NamedTuple):
    """What a report was made from, for those who want to see more of it."""

    analysis: Analysis
    run: RunSeries
    attribution: Attribution
    names: dict[str, str]


def _examine(
    recording: Recording,
    engine: Engine = here,
    make_band: Callable[[RunSeries], Band] | None = None,
) -> _Examination:
    recording.censuses += device_censuses(recording)
    run = RunSeries(recording)
    machine = machine_of(recording)
    names = name_processes(recording)
    judged = judge_run(run, machine.limit_bytes, names, engine)
    names |= {one.process: crowd_of(names[one.parent]) for one in judged.crowds}
    evidence = evidence_of(recording)
    judged = with_block_sizes(judged, evidence)
    explained = attribute(run, judged, evidence)
    overall = decide(run, judged, explained, names)
    attribution = Attribution(overall.growing(), explained)
    kinds = {process: start.kind for process, start in recording.starts.items()}
    sources = sources_for(recording, run.axis.process or "")
    by_clock = {process for process, seen in evidence.items() if seen.source in CLOCKS}
    scene = Scene(
        names,
        kinds,
        run.axis.source,
        recording.run.directory,
        sources,
        machine,
        frozenset(by_clock) if run.axis.process is not None else frozenset(),
    )
    gaps: list[Gap] = []
    fixed = _fixed(findings_of(attribution, scene, gaps), attribution, recording, gaps)
    suspects = attribution.suspects()
    roles = roles_of(recording, run.axis.process or "")
    harmless = harmless_in(RunCase(run, overall, suspects, roles), gaps)
    verdicts = tuple(with_name(verdict, names) for verdict in overall.verdicts)
    processes = summarise_processes(recording, run, names)
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
        forecast=_forecast(recording, run, overall),
        peak=peak_of(run),
        notes=(*notes_on(run, overall, names), *notes_on_children(run, processes)),
        processes=processes,
        ending=ending_of(recording, run),
        machine=machine,
        cost=cost_of(recording),
        started_wall_ns=recording.run.started_wall_ns,
        leakscope=recording.run.leakscope,
        harmless=harmless,
        job=job_of(run, overall, fixed.findings, processes, make_band(run) if make_band else None),
        devices=devices_of(run, names),
        black_boxes=full_moments(recording, names),
    )
    return _Examination(Analysis(report, fixed.changes), run, attribution, names)


def _forecast(recording: Recording, run: RunSeries, overall: Overall) -> Forecast | None:
    """The limit that is reached first, of a machine or of a device."""
    devices = devices_now(recording)
    ahead = []
    for host in recording.run.hosts or {recording.run.machine.host: recording.run.machine}:
        on_host = [a for a in overall.accounts if run.lineage.host_of(a.process) == host]
        there = overall._replace(accounts=tuple(on_host))
        one = forecast(there, memory_now(recording, host), devices, run.axis)
        ahead += [one] if one is not None else []
    return min(ahead, key=lambda one: one.steps_left.value, default=None)


def _fixed(
    findings: tuple[Finding, ...],
    attribution: Attribution,
    recording: Recording,
    gaps: list[Gap],
) -> Fixed:
    suspects = [
        (suspect, sources_for(recording, explained.process))
        for explained in attribution.of_growing()
        for suspect in explained.suspects
    ]
    return with_diffs(findings, suspects, recording.run.directory, gaps)
