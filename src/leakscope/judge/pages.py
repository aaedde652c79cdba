"""What resident memory says beside the exact counters of a process: pages that stay when what lay
in them was freed, that are a file's, that a forked child comes to own, or that are outside of both.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from leakscope import text
from leakscope.judge.series import HELD, IN_USE, RSS, USS
from leakscope.model import Outcome, Series, Shape, Verdict

_SMALLEST_OUTSIDE = float(4 << 20)
"""Resident memory alone, beside exact counters that are flat: clean training moves it by up to 2
MiB in its first hundreds of steps (stacks, pools of the C library). 2.2 MiB in 250 steps of a
transformer that keeps nothing were called growth, in one run of thirteen. Twice that, as the ladder
has it (`_ENOUGH_PAGES`); no other value was tried."""

_SMALLEST_COPIED = float(2 << 20)
"""A forked worker that reads nothing large copies 0.7 to 0.9 MiB while it gets going: interpreter,
libraries, its queues (PyTorch 2.13)."""

_ENOUGH_FILE_SAMPLES = 3

_TEETH = 2.0
"""Resident memory follows the highest tooth so far, and does not come down between them: a rise of
less than two of them says nothing (1.3 seen in a program that keeps nothing). Small objects have
teeth too: a tree search with parents, 344,192 blocks given back once, was called growing."""


def grows(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.outcome in (Outcome.GROWING, Outcome.LEAK)


def pages_of_teeth(
    resident: Verdict, judged: Mapping[str, Verdict], given_back: Mapping[str, float]
) -> Verdict | None:
    """Resident memory grows by no more than undecided counters have given back, these pages being
    of teeth that were higher than those before: the counter with the highest, or None."""
    teeth = {
        metric: size
        for metric, size in given_back.items()
        if judged[metric].outcome is Outcome.UNKNOWN
    }
    if not teeth or _risen(resident) > _TEETH * sum(teeth.values()):
        return None
    return judged[max(teeth, key=lambda metric: teeth[metric])]


def _risen(verdict: Verdict) -> float:
    """In the judged part."""
    return verdict.bytes_per_step.value * (verdict.to_step - verdict.from_step)


def given_back_since(series: Series, since: float) -> float:
    """The deepest fall from this step on: the height of its highest tooth."""
    highest, deepest = 0.0, 0.0
    for step, value in zip(series.steps, series.values, strict=True):
        if step >= since:
            highest = max(highest, value)
            deepest = max(deepest, highest - value)
    return deepest


def without_files(resident: Verdict, files: Series | None) -> Verdict:
    """Pages of mapped files are the kernel's to take back: reading a file once is not growth."""
    if not grows(resident) or files is None or len(files.values) < _ENOUGH_FILE_SAMPLES:
        return resident
    span = files.steps[-1] - files.steps[0]
    rate = (files.values[-1] - files.values[0]) / span if span > 0 else 0.0
    if rate < resident.bytes_per_step.value / 2:
        return resident
    because = (
        f"Resident memory grows by {text.size(resident.bytes_per_step.value)} per step, but by "
        f"pages of mapped files ({text.size(rate)} per step), which the kernel takes back when "
        "memory is short: not a leak."
    )
    return replace(resident, outcome=Outcome.STEADY, because=because)


def copy_on_write(judged: dict[str, Verdict]) -> Verdict | None:
    """Private pages grow while resident ones do not: pages shared at the fork are being copied."""
    private, resident = judged.get(USS), judged.get(RSS)
    if private is None or not grows(private) or resident is None or grows(resident):
        return None
    # Not what it was higher by in the end: pages that the parent gives up become the child's own at
    # once (71 MiB beside 0.6 MiB of growth).
    if _risen(private) < _SMALLEST_COPIED:
        return None
    because = (
        f"Private memory grows by {text.size(private.bytes_per_step.value)} per step while "
        "resident memory and what malloc has given out stay flat: pages shared with the parent "
        "since the fork are being copied, as reading Python objects writes their reference counts."
    )
    return replace(private, shape=Shape.COPY_ON_WRITE, because=because)


def held_by_allocator(judged: dict[str, Verdict]) -> Verdict | None:
    """In-use memory is flat and resident memory is not: say which of the two reasons it is."""
    resident, held = judged.get(RSS), judged.get(HELD)
    if resident is None or not grows(resident):
        return None
    live = judged[IN_USE]
    if live.outcome is not Outcome.STEADY:
        return None
    if _risen(resident) < _SMALLEST_OUTSIDE:
        return None
    if live.smallest_visible_bytes_per_step > resident.bytes_per_step.value:
        because = (
            f"Resident memory grows by {text.size(resident.bytes_per_step.value)} per step, but "
            "live memory goes up and down too much from step to step to tell whether that is kept "
            "or only held by the allocator; run longer."
        )
        return replace(resident, outcome=Outcome.UNKNOWN, because=because)
    rate = text.size(resident.bytes_per_step.value)
    if held is not None and grows(held):
        because = (
            f"Resident memory grows by {rate} per step, but what the program has in use is flat: "
            f"the allocator holds {text.size(held.bytes_per_step.value)} more freed memory per "
            "step than it gives back."
        )
        return replace(resident, shape=Shape.FRAGMENTATION, because=because)
    if held is not None and held.smallest_visible_bytes_per_step > resident.bytes_per_step.value:
        because = (
            f"Resident memory grows by {rate} per step, but what the program has in use is flat; "
            "the allocator's freed memory goes up and down too much to tell whether it will hold "
            "ever more of it or has met its largest steps yet. Run longer."
        )
        return replace(resident, outcome=Outcome.UNKNOWN, because=because)
    because = (
        f"Resident memory grows by {rate} per step, while malloc's and Python's own counters are "
        "flat: the growth is outside of both (mapped files, shared memory, a library's own pool)."
    )
    return replace(resident, because=because)
