"""Full sentences about what was seen beside the verdict: each only if it was measured."""

from __future__ import annotations

import numpy as np

from leakscope import text
from leakscope.judge.account import BLOCK_BYTES
from leakscope.judge.overall import Overall
from leakscope.judge.series import IN_USE, RSS, RunSeries
from leakscope.model import REMEDY, Mark, Outcome, Verdict
from leakscope.summarise.peak import FREED, TRANSIENT, peak_of

_WORTH_SAYING = 256 * 1024
_APART = 1.5
"""Resident memory that grows so many times as fast as live memory is worth a word."""
_FEWEST_FITS = 4
_PASSING_WORTH_SAYING = 4 * 1024 * 1024
_ABOUT = 1.5
"""What a remedy gives back lies within this factor of what had grown. It is a note, not a verdict;
no experiment chose it."""
_CAUSES = {
    "collection": (
        "a full garbage collection",
        "garbage in reference cycles that the collector had not come to, or what the program "
        "itself held in a cycle until it was done; gc.collect() every hundred steps tells which",
    ),
    "thaw": (
        "gc.unfreeze() and a collection",
        "garbage in reference cycles that gc.freeze() keeps from the collector for good",
    ),
}


def notes_on(run: RunSeries, overall: Overall, names: dict[str, str]) -> tuple[str, ...]:
    notes = (
        _live_and_held(run, overall),
        _per_fit(run, overall),
        _within_a_step(run, overall),
        _garbage(run, overall),
        _remedy(run, overall),
        _swap(run),
        _clock(run),
    )
    return tuple(note for note in notes if note is not None)


def _live_and_held(run: RunSeries, overall: Overall) -> str | None:
    """Live and held are two numbers; where they grow apart, say both."""
    lead = run.axis.process or ""
    verdicts = {v.series.metric: v for v in overall.verdicts if v.series.process == lead}
    live, resident = verdicts.get(IN_USE), verdicts.get(RSS)
    if live is None or resident is None:
        return None
    grows = (Outcome.GROWING, Outcome.LEAK)
    if live.outcome not in grows or resident.outcome not in grows:
        return None
    a, b = live.bytes_per_step.value, resident.bytes_per_step.value
    if b <= _APART * a:
        return None
    return (
        f"Live memory grows by {text.size(a)} per step, resident memory by {text.size(b)}: the "
        f"rest is freed memory that {run.allocator_of(lead)} cannot give back because the "
        "survivors lie between it."
    )


def _per_fit(run: RunSeries, overall: Overall) -> str | None:
    """Where whole models are trained in a loop, the round that people think of is a fit."""
    if overall.outcome not in (Outcome.GROWING, Outcome.LEAK):
        return None
    fits = [
        (int(mark.text), mark.values["in_use_bytes"])
        for mark in run.recording.marks
        if mark.what == "fit" and mark.process == run.axis.process
        if mark.text is not None and "in_use_bytes" in mark.values
    ]
    later = fits[len(fits) // 2 :]
    if len(later) < _FEWEST_FITS:
        return None
    (first, before), (last, after) = later[0], later[-1]
    each = (after - before) / max(last - first, 1)
    if each < _WORTH_SAYING:
        return None
    return (
        f"fit() was called {text.count(fits[-1][0])} times, and memory in use grew by "
        f"{text.size(each)} from one to the next in the second half of them."
    )


def _within_a_step(run: RunSeries, overall: Overall) -> str | None:
    """Values that a step makes and lets go: they raise the peak and do not add up."""
    peak = peak_of(run)
    if peak is None or overall.outcome is not Outcome.STEADY or run.axis.tick_s is not None:
        return None
    above = peak.parts.get(TRANSIENT, 0) + peak.parts.get(FREED, 0)
    if above < _PASSING_WORTH_SAYING:
        return None
    return (
        f"Within a step memory goes up to {text.size(above)} above what is live at its end: values "
        "that a step makes and lets go, at most one generation at a time. They raise the peak by "
        "that much and do not add up over steps."
    )


def _garbage(run: RunSeries, overall: Overall) -> str | None:
    lead = next((one for one in overall.growing() if one.process == run.axis.process), None)
    if lead is None or overall.outcome is Outcome.LEAK:
        return None  # a holder was found: it is not garbage, or it is and has been named
    collections = [
        m
        for m in run.recording.marks
        if m.what == "collection"
        and m.process == lead.process
        and _judged(lead.verdict, run, m.at.mono_ns)
    ]
    if collections:
        return None
    return (
        "No full garbage collection ran in the judged part, so garbage in reference cycles is "
        "not ruled out as the cause: it would go away with gc.collect()."
    )


def _remedy(run: RunSeries, overall: Overall) -> str | None:
    """The remedy that gave back about what had grown names the cause; one that gave back what the
    allocator held says that it was free."""
    # Where the holder is known, what ended it with the program is no news.
    unexplained = [one for one in overall.growing() if one.verdict.outcome is Outcome.GROWING]
    rates = {one.process: one.verdict.bytes_per_step.value for one in unexplained}
    for mark in run.recording.marks:
        if mark.what != REMEDY:
            continue
        grown = rates.get(mark.process, 0.0) * run.axis.last_step
        cause = _CAUSES.get(mark.text or "")
        returned = _returned(mark, "in_use_bytes")
        if not run.recording.pool_of(mark.process):  # else Python's blocks are among those bytes
            returned += BLOCK_BYTES.value * _returned(mark, "blocks_count")
        if cause and grown and 1 / _ABOUT <= returned / grown <= _ABOUT:
            return (
                f"At the end of the run {cause[0]} gave back {text.size(returned)}, about what had "
                f"grown: {cause[1]}."
            )
        resident = _returned(mark, "rss_bytes")
        if mark.text == "trim" and resident >= _PASSING_WORTH_SAYING:
            return (
                f"At the end of the run malloc_trim gave {text.size(resident)} back to the system: "
                f"memory that was free already, and that {run.allocator_of(mark.process)} held."
            )
    return None


def _returned(mark: Mark, counter: str) -> float:
    return mark.values.get(f"{counter} before", 0) - mark.values.get(f"{counter} after", 0)


def _judged(verdict: Verdict, run: RunSeries, mono_ns: int) -> bool:
    step = run.axis.at(np.array([mono_ns], dtype=np.float64))[0]
    return bool(verdict.from_step <= step <= verdict.to_step)


def _swap(run: RunSeries) -> str | None:
    swapped = max((s.values.get("swap_bytes", 0) for s in run.recording.samples), default=0)
    if swapped < _WORTH_SAYING:
        return None
    return (
        f"Up to {text.size(swapped)} of the program was swapped out: memory pressure, which makes "
        "resident memory fall and steps slow; it is not a leak by itself."
    )


def _clock(run: RunSeries) -> str | None:
    if run.axis.tick_s is None:
        return None
    return (
        f"No training or inference step was seen, so a step here is a tick of "
        f"{text.duration(run.axis.tick_s)} on the clock. Call leakscope.step() once per round of "
        "your loop for bytes per round."
    )
