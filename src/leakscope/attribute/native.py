"""Growth that no look could find in Python: lines whose native memory stays, from two windows."""

from __future__ import annotations

from collections.abc import Mapping

from leakscope.attribute.fingerprint import fingerprint
from leakscope.attribute.places import site_of
from leakscope.attribute.suspect import Suspect
from leakscope.model import DEVICE_TOOL, Holding, Link, SiteTally, Window
from leakscope.record.reader import Recording

_WINDOWS_AGREEING = 2
_FEWEST_A_STEP = 0.2
"""Blocks a step: fewer than one in five steps is what a step has in flight, or a pool's refill."""
_FAR_ABOVE = 4.0
"""Times what memory grows by: a line that leaves more behind in every step of both windows, while
memory does not rise by it, has it freed later."""
_MANY_OBJECTS = 10.0
"""From here on the native blocks are what Python's objects have outside of its arenas, such as the
table of a long list."""


def native_suspects(
    recording: Recording, process: str, measured: float, sources: Mapping[str, str]
) -> list[Suspect]:
    """Lines that left more native memory behind in a longer window than in a shorter one.

    What a step has in flight is alive at the end of any window, and the same in both."""
    windows = sorted(
        (
            window
            for window in recording.windows
            if window.process == process and window.tool != DEVICE_TOOL
        ),
        key=lambda window: window.steps,
    )
    if len(windows) < _WINDOWS_AGREEING or measured <= 0:
        return []
    short, long = windows[0], windows[-1]
    steps = long.steps - short.steps
    if steps < short.steps:
        return []
    before, after = (_lines_of(window, sources) for window in (short, long))
    found = []
    for line in before.keys() & after.keys():
        rate = (after[line].bytes - before[line].bytes) / steps
        count = (after[line].count - before[line].count) / steps
        if 0 < rate <= _FAR_ABOVE * measured and count >= _FEWEST_A_STEP:
            found.append(_native_suspect(long, after[line], rate, count, measured, sources))
    beside = _objects_beside(recording, process, windows, found)
    return [] if beside >= _MANY_OBJECTS else found


def _objects_beside(
    recording: Recording, process: str, windows: list[Window], found: list[Suspect]
) -> float:
    """How many of Python's own blocks come with each native one, before the windows or after them:
    memray's import leaves a thousand behind in between. A leak of native code alone leaves their
    number as it is."""
    rows = recording.columns(process, recording.snapshot_source(process))
    first = min((window.at.step or 0) - window.steps for window in windows)
    last = max(window.at.step or 0 for window in windows)
    counts = [
        (step, count)
        for step, count in zip(rows.get("step", ()), rows.get("blocks_count", ()), strict=False)
        if step is not None and count is not None
    ]
    parts = ([one for one in counts if one[0] < first], [one for one in counts if one[0] > last])
    grown = [(part[-1][1] - part[0][1]) / (part[-1][0] - part[0][0]) for part in parts if part[1:]]
    native = sum(one.count_per_step for one in found)
    return min(grown, default=0.0) / native if native > 0 else 0.0


def _lines_of(window: Window, sources: Mapping[str, str]) -> dict[tuple[str, int], SiteTally]:
    """What one window left alive, by the innermost line of the user's code."""
    lines: dict[tuple[str, int], SiteTally] = {}
    for tally in window.sites:
        frame = next((one for one in tally.frames if one.file in sources), None)
        if frame is None:
            continue
        key = (frame.file, frame.line)
        known = lines.get(key, SiteTally(tally.frames, 0, 0))
        lines[key] = SiteTally(known.frames, known.count + tally.count, known.bytes + tally.bytes)
    return lines


def _native_suspect(
    window: Window,
    tally: SiteTally,
    rate: float,
    count: float,
    measured: float,
    sources: Mapping[str, str],
) -> Suspect:
    site = site_of((tally,), sources)
    name = site.function or "" if site else ""
    link = Link("no Python object holds it", "native memory", "native", name=name)
    step = window.at.step or 0
    holding = Holding(
        at=window.at,
        process=window.process,
        kind="native",
        path=(link,),
        grows_at=0,
        item="native block",
        counts=((step - window.steps, 0), (step, round(count * window.steps))),
        bytes_each=rate / count,
        sites=(tally,),
    )
    return Suspect(
        holding=holding,
        share=rate / measured,
        count_per_step=count,
        site=site,
        keeper=None,
        named=None,
        fingerprint=fingerprint((link,), 0, "native"),
        is_bounded="",
        snapshots=_WINDOWS_AGREEING,
    )
