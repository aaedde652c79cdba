"""The whole experiment, run by run: the state on disk is always up to date with what was done."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from leakscope.bisect.conclude import best_factor
from leakscope.bisect.factors import Factor, factors_for
from leakscope.bisect.state import State, write_state
from leakscope.bisect.trial import (
    GROWS,
    RunFailedError,
    Subject,
    end_leftover,
    run_trial,
    subject_of,
    trial_of,
)
from leakscope.model import Finding, Measured, Outcome, Report, Trial

IN_WORDS = "the program as it is"
_NOTHING = Measured(None, None, None, None)
_NO_SUBJECT = Subject("main", "process.rss_bytes", False, False)


class Session:
    """Runs what is still missing, one trial at a time."""

    def __init__(
        self,
        state: State,
        folder: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        steps_from: str,
        seconds: float | None,
        only: Sequence[str] = (),
    ) -> None:
        self.state = state
        self._folder = folder
        self._command = command
        self._environment = environment
        self._steps_from = steps_from
        self._seconds = seconds
        self._only = only

    def run(self, tell: Callable[[str, int, int], None]) -> State:
        """Go on until there is nothing left to try. `tell` hears what comes next, how many runs
        are done and how many there will be."""
        state = self.state
        end_leftover(state.running)
        while (following := self._next()) is not None:
            factor, title = following
            tell(title, len(state.trials), self.planned())
            self._try(factor)
            write_state(self._folder, state)
        state.is_done = True
        write_state(self._folder, state)
        return state

    def planned(self) -> int:
        """Runs in all, as far as they are known: the program twice, each factor once, and the best
        of them once more."""
        if not self.state.runs_of(""):
            return 1
        if self.state.subject is None:
            return len(self.state.trials)
        return len(self.state.factors) + 3

    def left_seconds(self) -> float | None:
        """A guess from the runs so far; None before the first."""
        trials = self.state.trials
        if not trials:
            return None
        mean = sum(trial.seconds for trial in trials) / len(trials)
        return mean * max(self.planned() - len(trials), 0)

    def _next(self) -> tuple[Factor | None, str] | None:
        state = self.state
        if not state.runs_of(""):
            return None, IN_WORDS
        if state.subject is None:
            return None  # it does not grow: nothing is left to do
        for factor in state.factors:
            if not state.runs_of(factor.id):
                return factor, factor.title
        if len(state.runs_of("")) < 2:
            return None, f"{IN_WORDS}, again"
        best = best_factor(state)
        if best is not None and len(state.runs_of(best.id)) < 2:
            return best, f"{best.title}, again"
        return None

    def _try(self, factor: Factor | None) -> None:
        state = self.state
        name = factor.id if factor is not None else ""
        number = len(state.runs_of(name)) + 1
        recording = os.path.join(self._folder, f"{name or 'as-it-is'}-{number}")
        environment = {**self._environment, **(factor.environment if factor is not None else {})}
        as_it_is = next(iter(state.runs_of("")), None)
        try:
            report, took_s = run_trial(
                self._command,
                recording,
                environment,
                steps_from=self._steps_from,
                seconds=self._seconds,
                on_start=self._note_running,
            )
        except RunFailedError as failed:
            if as_it_is is None:
                raise
            line = str(failed).strip().rpartition("\n")[2] or "it left no report"
            state.trials.append(_failed(name, number, recording, line))
            return
        if as_it_is is None:
            self._choose(report)
        state.trials.append(
            trial_of(
                report,
                state.subject or _NO_SUBJECT,
                factor=name,
                number=number,
                seconds=took_s,
                recording=recording,
                as_it_is=as_it_is,
                is_cut=self._seconds is not None and took_s >= self._seconds,
            )
        )

    def _note_running(self, process: str) -> None:
        self.state.running = process
        write_state(self._folder, self.state)

    def _choose(self, report: Report) -> None:
        """After the first run: what is followed, and which factors apply to this program."""
        state = self.state
        if report.verdict in GROWS:
            state.subject = subject_of(report)
        if state.subject is None:
            return
        factors, left_out = factors_for(
            report.machine, self._environment, live_grows=state.subject.is_live
        )
        if self._only:
            factors = tuple(one for one in factors if one.id in self._only)
        state.factors, state.left_out = factors, left_out
        state.kept_by = _kept_by(report.findings)


def _failed(name: str, number: int, recording: str, why: str) -> Trial:
    return Trial(
        name, number, 0.0, Outcome.UNKNOWN, 0, "", _NOTHING, recording, f"it failed: {why}"
    )


def _kept_by(findings: Sequence[Finding]) -> str:
    """The statement of the finding with the largest share."""
    for finding in sorted(findings, key=lambda one: -one.share):
        site = finding.keeper or finding.site
        if site is not None:
            source = f" ({site.source.strip()})" if site.source else ""
            return f"{site.file}:{site.line}{source}"
    return ""
