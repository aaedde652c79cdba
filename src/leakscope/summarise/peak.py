"""The highest point of the run, and what it was made of."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from leakscope import text
from leakscope.judge.series import HELD, IN_USE, RSS, RunSeries
from leakscope.model import Peak, Series
from leakscope.record.reader import Recording

FREED = "freed, held by the allocator"
TRANSIENT = "transient, within a step"
_ROLES = ("parameter", "gradient", "optimizer state")


def peak_of(run: RunSeries) -> Peak | None:
    """Of the process that counts the steps: its peak, split into parts that add up to it."""
    process = run.axis.process
    if process is None:
        return None
    series = run.of(process)
    at_steps = series.get(RSS)
    if at_steps is None:
        return None
    total, at_step = _highest(run, process)
    # What stands at the step where most stands; whatever the peak has above it came and went.
    highest = int(np.argmax(at_steps.values))
    standing, step = int(at_steps.values[highest]), at_steps.steps[highest]
    total = max(total, standing)
    in_use = _value_at(series.get(IN_USE), step)
    held = _value_at(series.get(HELD), step)
    parts = split(standing, roles_of(run.recording, process), in_use, held)
    _take(parts, TRANSIENT, total - standing, total - standing)
    transient = parts.get(TRANSIENT, 0)
    says = f"{text.size(total)} at the highest point"
    if transient > 0.02 * total:
        says += f", {text.size(transient)} of it only within a step"
    return Peak(total, at_step, parts, says)


def split(resident: int, roles: Mapping[str, int], in_use: int, held: int) -> dict[str, int]:
    """What resident memory consists of, as far as it is known; the parts add up to it."""
    parts: dict[str, int] = {}
    left = resident
    for role in _ROLES:
        left -= _take(parts, _plural(role), roles.get(role, 0), left)
    left -= _take(parts, "other live memory", in_use - sum(parts.values()), left)
    left -= _take(parts, FREED, held, left)
    _take(parts, "interpreter, libraries and small Python objects", left, left)
    return parts


def roles_of(recording: Recording, process: str) -> dict[str, int]:
    """Bytes by role as the optimizer last had them."""
    for census in reversed(recording.censuses):
        if census.process == process and census.probe == "torch.optimizer":
            return {tally.role: tally.bytes for tally in census.tallies}
    return {}


def _highest(run: RunSeries, process: str) -> tuple[int, int | None]:
    """The highest resident size while steps were made, without imports and what came after."""
    first, last = run.axis.mono_ns[0], run.axis.mono_ns[-1]
    best, at = 0, None
    for source in run.recording.sources(process):
        columns = run.recording.columns(process, source)
        rows = zip(columns.get("mono_ns", ()), columns.get("rss_bytes", ()), strict=False)
        for ns, rss in rows:
            if ns is not None and rss is not None and first <= ns <= last and rss > best:
                best, at = rss, ns
    step = run.axis.at(np.array([at], dtype=np.float64))[0] if at is not None else None
    return best, max(int(step), 0) if step is not None else None


def _value_at(series: Series | None, step: float) -> int:
    return int(np.interp(step, series.steps, series.values)) if series is not None else 0


def _take(parts: dict[str, int], name: str, size: int, left: int) -> int:
    """Give a part no more than is left, so that the parts add up."""
    size = min(max(int(size), 0), max(left, 0))
    if size:
        parts[name] = size
    return size


def _plural(role: str) -> str:
    return role if role.endswith("state") else role + "s"
