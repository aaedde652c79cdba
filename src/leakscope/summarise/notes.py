"""Full sentences about what was seen beside the verdict: each only if it was measured."""

from __future__ import annotations

import numpy as np

from leakscope import text
from leakscope.judge.overall import Overall
from leakscope.judge.series import HELD, IN_USE, RSS, RunSeries
from leakscope.model import Outcome, Verdict
from leakscope.summarise.peak import FREED, TRANSIENT, peak_of, roles_of

_WORTH_SAYING = 256 * 1024
_HELD_WORTH_SAYING = 16 * 1024 * 1024
_PASSING_WORTH_SAYING = 4 * 1024 * 1024


def notes_on(run: RunSeries, overall: Overall, names: dict[str, str]) -> tuple[str, ...]:
    notes = (
        _live_and_held(run, overall),
        _within_a_step(run, overall),
        _first_optimizer_step(run),
        _saves(run),
        _garbage(run, overall),
        _swap(run),
        _clock(run),
    )
    return tuple(note for note in notes if note is not None)


def _live_and_held(run: RunSeries, overall: Overall) -> str | None:
    """Live and held are two numbers; where they part, say both."""
    verdicts = {v.series.metric: v for v in overall.verdicts if v.series.process == _lead(run)}
    live, resident = verdicts.get(IN_USE), verdicts.get(RSS)
    if live is None or resident is None:
        return None
    allocator = _allocator(run)
    grows = (Outcome.GROWING, Outcome.LEAK)
    if live.outcome in grows and resident.outcome in grows:
        a, b = live.bytes_per_step.value, resident.bytes_per_step.value
        if b > 1.5 * a:
            return (
                f"Live memory grows by {text.size(a)} per step, resident memory by "
                f"{text.size(b)}: the rest is freed memory that {allocator} cannot give back "
                "because the survivors lie between it."
            )
        return None
    held = run.series.get((HELD, _lead(run)))
    if held is None or live.outcome is not Outcome.STEADY:
        return None
    now = held.values[-1]
    if now < _HELD_WORTH_SAYING or now < 0.1 * _last(run, RSS):
        return None
    settings = run.recording.run.machine.allocator_settings
    said = ", ".join(f"{name}={value}" for name, value in settings.items()) or "no setting changed"
    return (
        f"{allocator} holds {text.size(now)} of freed memory for reuse ({said}). It is not live "
        "and not a leak; how much is held differs between machines with the allocator, its "
        "arenas and its thresholds."
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


def _first_optimizer_step(run: RunSeries) -> str | None:
    series = run.series.get((IN_USE, _lead(run)))
    if series is None or run.axis.source != "optimizer" or series.steps[:1] != (0.0,):
        return None
    after = next((v for s, v in zip(series.steps, series.values, strict=True) if s >= 1), None)
    if after is None or after - series.values[0] < _WORTH_SAYING:
        return None
    roles = roles_of(run, _lead(run))
    state, parameters = roles.get("optimizer state", 0), roles.get("parameter", 0)
    if state < _WORTH_SAYING:
        return None
    said = f"{state / parameters:.1f} times the parameters" if parameters else "its state"
    return (
        f"The first optimizer step added {text.size(after - series.values[0])} and created "
        f"{text.size(state)} of optimizer state ({said}). That happens once; it is not a leak."
    )


def _saves(run: RunSeries) -> str | None:
    """Checkpoints: how often, and what each takes for its time."""
    lead = _lead(run)
    series = run.series.get((IN_USE, lead))
    # A checkpoint may be several files, and each is touched when opened and when closed.
    highest: dict[int, int] = {}
    for mark in run.recording.marks:
        if mark.what == "save" and mark.process == lead and "in_use_bytes" in mark.values:
            step = mark.at.step or 0
            highest[step] = max(highest.get(step, 0), mark.values["in_use_bytes"])
    if not highest or series is None:
        return None
    steps = np.array(list(highest), dtype=np.float64)
    standing = np.interp(steps, series.steps, series.values)
    rise = float(np.median(np.array(list(highest.values())) - standing))
    said = f"{text.plural(len(steps), 'checkpoint')} saved"
    if len(steps) > 2:
        said += f", about every {text.count(round(float(np.median(np.diff(steps)))))} steps"
    if rise > _WORTH_SAYING:
        return (
            f"{said}. Live memory is {text.size(rise)} higher while one is written and comes back: "
            "a transient, not a leak."
        )
    return f"{said}. Live memory is no higher while one is written."


def _garbage(run: RunSeries, overall: Overall) -> str | None:
    lead = next((one for one in overall.growing() if one.process == _lead(run)), None)
    if lead is None or lead.verdict.outcome is Outcome.LEAK:
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


def _allocator(run: RunSeries) -> str:
    start = run.recording.starts.get(_lead(run))
    return (start.environment.get("allocator") if start else None) or "the allocator"


def _lead(run: RunSeries) -> str:
    return run.axis.process or ""


def _last(run: RunSeries, metric: str) -> float:
    series = run.series.get((metric, _lead(run)))
    return series.values[-1] if series else 0.0
