"""One run of the program under one changed factor: a recording on disk, its rates out.

Each run is a `leakscope run` of its own, in a session of its own, so that a program that hangs or
forks can be ended whole. What the program prints is not kept: its end is shown if a run fails.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO

from leakscope.comparison import bounded
from leakscope.model import Measured, Outcome, Rate, Report, Trial, Verdict
from leakscope.model.noun import Noun
from leakscope.record.format import name_process
from leakscope.render.to_json import read
from leakscope.summarise.machine import START_METHOD

IN_USE = "heap.in_use_bytes"
BLOCKS = "python.blocks_count"
RSS = "process.rss_bytes"
USS = "process.uss_bytes"
GROWS = (Outcome.LEAK, Outcome.GROWING)

_PATIENCE_S = 15.0
"""For a program that was asked to end, and for the report on it."""
_FEWEST_STEPS = 0.5
_LINES_SHOWN = 12


class Subject(Noun, frozen=True):
    """What is followed from run to run: chosen once, by the run as it is."""

    process: str
    resident: str
    """Metric: RSS, or the private memory of a child."""
    with_blocks: bool
    """True if Python's small objects grow: they are in use too, outside malloc."""
    is_live: bool
    """True if memory in use grows; otherwise resident memory is the question."""


class RunFailedError(Exception):
    """The run left no report; the text is the end of what was printed."""


def subject_of(report: Report) -> Subject | None:
    """The process that grows most, and in which memory; None if none does."""
    growing = [
        one
        for one in report.verdicts
        if one.outcome in GROWS and one.unit == "bytes" and one.series.process != "all"
    ]
    if not growing:
        return None
    exact = [one for one in growing if one.series.metric in (IN_USE, BLOCKS)]
    outside = [one for one in growing if one.series.metric in (RSS, USS)]
    candidates = exact or outside
    if not candidates:
        return None
    lead = max(candidates, key=lambda one: one.bytes_per_step.value)
    metrics = {one.series.metric for one in growing if one.series.process == lead.series.process}
    return Subject(
        lead.series.process,
        USS if USS in metrics and RSS not in metrics else RSS,
        BLOCKS in metrics,
        bool(exact),
    )


def measure(report: Report, subject: Subject) -> Measured:
    live = _find(report, subject, IN_USE)
    blocks = _find(report, subject, BLOCKS) if subject.with_blocks else None
    resident = _find(report, subject, subject.resident)
    parts = [one for one in (live, blocks) if one is not None]
    outcome = None
    if live is not None:
        outcome = next((one.outcome for one in parts if one.outcome in GROWS), live.outcome)
    return Measured(
        live=_sum([bounded(one) for one in parts]) if live is not None else None,
        live_outcome=outcome,
        resident=bounded(resident) if resident is not None else None,
        resident_outcome=resident.outcome if resident is not None else None,
        peak_bytes=report.peak.total_bytes if report.peak is not None else None,
    )


def _find(report: Report, subject: Subject, metric: str) -> Verdict | None:
    """Of the same process; where its name has a pid in it, of the only one that has the metric."""
    same = [one for one in report.verdicts if one.series.metric == metric]
    exact = [one for one in same if one.series.process == subject.process]
    return exact[0] if exact else same[0] if len(same) == 1 else None


def _sum(rates: Sequence[Rate]) -> Rate:
    return Rate(
        sum(rate.value for rate in rates),
        sum(rate.low for rate in rates),
        sum(rate.high for rate in rates),
    )


def run_trial(
    command: Sequence[str],
    folder: str,
    environment: Mapping[str, str],
    *,
    steps_from: str,
    seconds: float | None,
    on_start: Callable[[str], None],
) -> tuple[Report, float]:
    """Run it, and say what was seen and how long it took."""
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was stopped half-way
    report = os.path.join(folder, "report.json")
    words = [
        *(sys.executable, "-P", "-m", "leakscope", "run", "--quiet", "--out", folder),
        *("--report", report, "--steps-from", steps_from, "--", *command),
    ]
    began_s = time.monotonic()
    with tempfile.TemporaryFile() as output:
        program = subprocess.Popen(
            words,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            on_start(name_process(program.pid))
            _wait(program, seconds)
        except BaseException:
            _end_all(program)
            raise
        took_s = time.monotonic() - began_s
        try:
            with open(report, encoding="utf-8") as file:
                return read(file.read()), took_s
        except OSError:
            raise RunFailedError(_end_of(output)) from None


def _wait(program: subprocess.Popen[bytes], seconds: float | None) -> None:
    try:
        program.wait(seconds)
    except subprocess.TimeoutExpired:
        program.send_signal(signal.SIGTERM)  # the supervisor hands it on, and reports
        try:
            program.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            _end_all(program)


def _end_all(program: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()


def end_leftover(process: str) -> None:
    """End the run of a bisect that was killed: it would go on writing where the next one does."""
    pid = int(process.partition("-")[0] or 0)
    with suppress(OSError):
        if pid and name_process(pid) == process:
            os.killpg(pid, signal.SIGKILL)


def _end_of(output: BinaryIO) -> str:
    output.seek(0)
    lines = output.read().decode("utf-8", "replace").splitlines()
    return "\n".join(lines[-_LINES_SHOWN:])


def trial_of(
    report: Report,
    subject: Subject,
    *,
    factor: str,
    number: int,
    seconds: float,
    recording: str,
    as_it_is: Trial | None,
    is_cut: bool,
) -> Trial:
    """A run as it is kept in the state, with the reason if it cannot be compared."""
    return Trial(
        factor=factor,
        number=number,
        seconds=seconds,
        verdict=report.verdict,
        steps=report.steps,
        steps_from=report.steps_from,
        measured=measure(report, subject),
        recording=recording,
        trouble=_trouble(report, as_it_is, is_cut=is_cut),
        start_method=report.machine.facts.get(START_METHOD, ""),
    )


def _trouble(report: Report, as_it_is: Trial | None, *, is_cut: bool) -> str:
    if as_it_is is None:
        return ""
    ending = report.ending
    if not is_cut and (ending.exit_code or ending.signal is not None):
        return f"the program {ending.says}"
    if report.steps_from != as_it_is.steps_from:
        return f"steps were counted by {report.steps_from} and not by {as_it_is.steps_from}"
    if report.steps_from != "time" and report.steps < _FEWEST_STEPS * as_it_is.steps:
        return f"it made {report.steps} steps and not {as_it_is.steps}"
    return ""
