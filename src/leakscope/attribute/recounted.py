"""What became of a holder after the last look: its lengths, as they were read by its name."""

from __future__ import annotations

from itertools import pairwise

from leakscope.model import COUNTED, Holding
from leakscope.record.reader import Recording

_SPANS = 2.0
"""So many times the distance between its looks without one more entry: it has stopped."""

FOLLOWED = 0.7
"""Of the run: counted so far, nothing has to be told from counters that scatter. A choice."""

_GOES_ON = 0.5
"""Of the entries that were to come by then, if it went on as between its looks. A choice."""

Counts = tuple[tuple[int, int], ...]


def counted_later(recording: Recording, holding: Holding) -> Counts:
    """(step, length) after the last look, in the order of the steps."""
    return _later(recording, holding, "length")


def weighed_later(recording: Recording, holding: Holding) -> Counts:
    """(step, bytes of each of its newest items) after the last look."""
    return _later(recording, holding, "bytes_each")


def times_as_heavy(holding: Holding, weights: Counts, step: float) -> float:
    """Its items at that step, beside those that the look weighed: a copy of all that came before is
    heavier each time. At least 1: the newest are in use by the step that is under way, which makes
    them seem lighter."""
    points = [(holding.counts[-1][0], int(holding.bytes_each)), *weights]
    if len(points) == 1 or points[0][1] <= 0:
        return 1.0
    pairs = pairwise(points)
    (before, light), (after, heavy) = next((p for p in pairs if p[1][0] >= step), points[-2:])
    at_step = light + (heavy - light) * (step - before) / (after - before)
    return max(at_step / points[0][1], 1.0)


def _later(recording: Recording, holding: Holding, value: str) -> Counts:
    words = " > ".join(link.via for link in holding.path[: holding.grows_at + 1])
    last = holding.counts[-1][0]
    return tuple(
        sorted(
            (mark.at.step, mark.values[value])
            for mark in recording.marks
            if mark.what == COUNTED
            and mark.process == holding.process
            and mark.text == words
            and mark.at.step is not None
            and mark.at.step > last
            and value in mark.values
        )
    )


def why_it_stops(holding: Holding, later: Counts) -> str:
    """It was emptied, or has not grown for long; empty if it goes on growing, or nobody looked."""
    if not later:
        return ""
    (first, at_first), (last, at_look) = holding.counts[0], holding.counts[-1]
    end, at_end = later[-1]
    expected = (at_look - at_first) * (end - last) / max(last - first, 1)
    if at_end - at_look > _GOES_ON * expected:
        return ""  # entries may be taken out of it now and then: there are ever more
    before_step, before = last, at_look
    for step, length in later:
        if length < before:
            return f"it had {before:,} entries at step {before_step:,} and {length:,} at {step:,}"
        before_step, before = step, length
    has_stopped = at_end <= at_look and end - last > _SPANS * (last - first)
    return f"it has had {at_end:,} entries since step {last:,}" if has_stopped else ""
