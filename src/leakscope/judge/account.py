"""The series of one process in, one answer for that process out.

Exact counters speak first: what malloc has given out, and how many blocks Python has. RSS has
the word only where they are missing, or for what they cannot see: freed memory that the
allocator holds, pages that a forked child comes to own, and memory outside malloc.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from leakscope import text
from leakscope.judge.pages import (
    copy_on_write,
    given_back_since,
    grows,
    held_by_allocator,
    pages_of_teeth,
    without_files,
)
from leakscope.judge.series import BLOCKS, FILES, HELD, IN_USE, RSS, USS
from leakscope.judge.verdict import judge
from leakscope.model import (
    LARGEST_BLOCK_BYTES,
    USUAL_BLOCK_BYTES,
    Outcome,
    Rate,
    Series,
    Shape,
    Verdict,
)

BLOCK_BYTES = Rate(USUAL_BLOCK_BYTES, 32.0, float(LARGEST_BLOCK_BYTES))
"""Bytes of a Python block: between pymalloc's smallest useful and its largest class."""
_NEARLY = 0.75
"""Of the smallest block, what RSS may show for each and still be believed. No experiment chose it:
two runs of one program that keeps numbers, 32 bytes each, came to 33 and to less than 32."""

_SUBJECTS = {
    IN_USE: "Memory in use",
    HELD: "Freed memory that the allocator holds",
    BLOCKS: "The number of Python's memory blocks",
    RSS: "Resident memory",
    USS: "Private memory",
}

_ALWAYS_MATTERS = 1024.0
"""Bytes per step from which growth is growth however short the run."""
_SMALLEST_TOTAL = float(256 << 10)
"""Slower growth must have come to so much: logs, rings and pools of the libraries fill up by some
50 KiB in the first hundred steps (measured: torch.distributed, Lightning) and stop."""
_SMALLEST_TOTAL_BY_PAGES = float(1 << 20)
"""Resident memory moves by a few hundred KiB in programs that keep nothing (pools, stacks, page
tables of the C library): by itself it must grow by a MiB before it is called growth."""

_SMALLEST_TOTAL_BESIDE_A_POOL = float(8 << 20)
"""The same where a library has a pool of its own: a steady `fit` of Keras creeps by 3 MiB over 66
calls (6,600 batches, TensorFlow 2.21), ever more slowly, and TensorFlow's leaks are large."""

_GARBAGE_SHARE = 0.02
"""Of all blocks. PyTorch's own garbage and reuse stay below 0.3 % in 200 steps, Lightning's (20
blocks a step) below 0.5 %; Python itself collects everything at 25 % of the old objects."""

_ENOUGH_POINTS = 8


class Account(NamedTuple):
    """What one process did."""

    process: str
    verdict: Verdict
    """The answer for this process, in bytes per step."""
    verdicts: tuple[Verdict, ...]
    """Every series of it that was judged, the one that decided first."""
    device: str | None = None
    """Whose memory it is about; None for the host's."""
    block_bytes: float = BLOCK_BYTES.value
    """What one of Python's blocks was taken to be."""
    is_untested: bool = False
    """It is Python's blocks alone that grow, and no full collection has looked for garbage in
    the second half of it."""

    @property
    def key(self) -> str:
        return self.process if self.device is None else f"{self.process} {self.device}"


def account_for(
    process: str,
    series: dict[str, Series],
    smallest_that_matters: float,
    *,
    is_child: bool,
) -> Account | None:
    """Judge the series of one process; None if there is nothing to judge."""
    judged = {}
    each = BLOCK_BYTES
    is_by_pages = IN_USE in series and series[IN_USE].has_blocks
    for metric, one in series.items():
        if metric == FILES or (metric == USS and not is_child):
            continue  # explains the others; private against shared pages is about children
        smallest = smallest_for(one, smallest_that_matters, is_by_pages=is_by_pages)
        verdict = settle(judge(one, smallest_that_matters=smallest), smallest, one)
        judged[metric] = replace(
            verdict,
            because=name_subject(verdict.because, _SUBJECTS.get(metric)),
            # A leak that would not have been called one was not visible either.
            smallest_visible_bytes_per_step=max(verdict.smallest_visible_bytes_per_step, smallest),
        )
    if BLOCKS in judged:
        each = _block_bytes(judged[BLOCKS], judged.get(IN_USE), judged.get(RSS))
        judged[BLOCKS] = _without_garbage(_in_bytes(judged[BLOCKS], each), series[BLOCKS])
    usable = {
        metric: verdict
        for metric, verdict in judged.items()
        if len(series[metric].values) >= _ENOUGH_POINTS
    }
    if not judged:
        return None
    if RSS in judged:
        judged[RSS] = without_files(judged[RSS], series.get(FILES))
        if RSS in usable:
            usable[RSS] = judged[RSS]
    if IN_USE in usable:
        is_all = series[IN_USE].has_blocks
        given_back = {IN_USE: given_back_since(series[IN_USE], usable[IN_USE].from_step)}
        if BLOCKS in usable and not is_all:
            blocks = given_back_since(series[BLOCKS], usable[BLOCKS].from_step)
            given_back[BLOCKS] = blocks * each.value
        answer = _answer_from_exact(usable, given_back, is_child=is_child, is_all=is_all)
    else:
        answer = _answer_from_outside(usable or judged, is_child=is_child)
    rest = tuple(v for v in judged.values() if v.series.metric != answer.series.metric)
    is_untested = answer.series.metric == BLOCKS and not _has_collected(
        series[BLOCKS], (answer.from_step + answer.to_step) / 2, answer.to_step
    )
    return Account(
        process, answer, (answer, *rest), block_bytes=each.value, is_untested=is_untested
    )


def name_subject(because: str, subject: str | None) -> str:
    """The judge knows numbers only and says "it"; here it gets its name."""
    if subject is None:
        return because
    if because.startswith("It "):
        return f"{subject} {because[3:]}"
    if because.startswith("Every "):
        within = subject if subject[:2].isupper() else f"{subject[0].lower()}{subject[1:]}"
        return because.replace(" it ", f" {within} ", 1)
    return because


def smallest_for(
    series: Series, smallest_that_matters: float, *, is_by_pages: bool = False
) -> float:
    """What matters, in the unit of this series and for its length. `is_by_pages`: bytes in use are
    read from resident memory, and no other counter is to be finer than that."""
    span = max(series.steps[-1] - series.steps[0], 1.0)
    if not series.is_exact or is_by_pages:
        total = _SMALLEST_TOTAL_BESIDE_A_POOL if is_by_pages else _SMALLEST_TOTAL_BY_PAGES
        smallest = max(smallest_that_matters, total / span)
        return smallest / BLOCK_BYTES.value if series.key.metric == BLOCKS else smallest
    smallest = max(smallest_that_matters, min(_ALWAYS_MATTERS, _SMALLEST_TOTAL / span))
    return smallest / BLOCK_BYTES.value if series.key.metric == BLOCKS else smallest


def _answer_from_exact(
    judged: dict[str, Verdict], given_back: dict[str, float], *, is_child: bool, is_all: bool
) -> Verdict:
    """`given_back`: by how much a counter has fallen. `is_all`: Python's small objects are in the
    bytes in use."""
    live, blocks = judged[IN_USE], judged.get(BLOCKS)
    if is_all and (grows(live) or not grows(blocks)):
        blocks = None
    if grows(live) and grows(blocks):
        assert blocks is not None
        return _add(live, blocks)
    if grows(live):
        return live
    if blocks is not None and grows(blocks):
        return blocks
    resident = judged.get(RSS)
    if live.outcome is Outcome.UNKNOWN and live.bytes_per_step.value > 0 and grows(resident):
        assert resident is not None
        if (toothed := pages_of_teeth(resident, judged, given_back)) is not None:
            return toothed
        return resident  # too few exact values to be sure of; what they say agrees
    if is_child and (copied := copy_on_write(judged)) is not None:
        return copied
    if (held := held_by_allocator(judged)) is not None:
        return held
    if (
        live.outcome is Outcome.STEADY
        and blocks is not None
        and blocks.outcome is Outcome.UNKNOWN
        and blocks.bytes_per_step.value >= _ALWAYS_MATTERS
    ):
        return blocks
    return live


def _answer_from_outside(judged: dict[str, Verdict], *, is_child: bool) -> Verdict:
    if is_child and (copied := copy_on_write(judged)) is not None:
        return copied
    for metric in (RSS, USS):
        if metric in judged:
            return judged[metric]
    return next(iter(judged.values()))


def _block_bytes(blocks: Verdict, live: Verdict | None, resident: Verdict | None) -> Rate:
    """What one of them takes: by what RSS grew for them where it shows, their usual size else."""
    count, size = blocks.bytes_per_step.value, BLOCK_BYTES
    if not grows(blocks) or resident is None or not grows(resident) or count <= 0:
        return size
    native = live.bytes_per_step.value if live is not None and grows(live) else 0.0
    each = (resident.bytes_per_step.value - native) / count
    if _NEARLY * size.low <= each <= size.high:
        each = max(each, size.low)  # a list of numbers is at the limit, and RSS is no exact figure
        return Rate(each, min(each, size.value), max(each, size.value))
    return size


def _in_bytes(blocks: Verdict, size: Rate) -> Verdict:
    """Blocks as bytes, with one block of this size."""
    count = blocks.bytes_per_step
    low, high = sorted((count.low * size.low, count.high * size.high))
    value = min(max(count.value * size.value, low), high)
    because = blocks.because
    if grows(blocks):
        because = (
            f"Python holds {count.value:,.1f} more memory blocks with every step "
            f"(about {text.size(value)}) from step {blocks.from_step:,.0f} "
            f"to step {blocks.to_step:,.0f}."
        )
    return replace(
        blocks,
        because=because,
        bytes_per_step=Rate(value, low, high),
        smallest_visible_bytes_per_step=blocks.smallest_visible_bytes_per_step * size.value,
        grown_bytes=blocks.grown_bytes * size.value,
        size_bytes=blocks.size_bytes * size.value,
        unit="bytes",
    )


def settle(verdict: Verdict, smallest: float, series: Series) -> Verdict:
    """Undecided, but too slow to matter whatever it is: steady, with that as the reason."""
    rate = verdict.bytes_per_step
    if verdict.outcome is not Outcome.UNKNOWN:
        return verdict
    if verdict.shape is Shape.SAW_TOOTH and (fastest := _at_most(series, verdict)) < smallest:
        # Teeth of some KiB come with every collection of a program that keeps nothing.
        rate = Rate(0.0, -fastest, fastest)
    elif not 0 < rate.high < smallest:
        return verdict
    because = (
        f"It moves by {text.rate_between(rate.low, rate.high, verdict.unit)}, "
        "below what matters here, whichever way it goes on."
    )
    return replace(verdict, outcome=Outcome.STEADY, because=because, bytes_per_step=rate)


def _at_most(series: Series, verdict: Verdict) -> float:
    """What may stay of the teeth, per step: all the room that there is between lowest and highest
    value, had it been filled from the first judged step to the last."""
    judged = [
        (step, value)
        for step, value in zip(series.steps, series.values, strict=True)
        if step >= verdict.from_step
    ]
    if len(judged) < _ENOUGH_POINTS:
        return float("inf")
    values = [value for _, value in judged]
    return (max(values) - min(values)) / max(judged[-1][0] - judged[0][0], 1.0)


def _without_garbage(blocks: Verdict, series: Series) -> Verdict:
    """Take back a growth of blocks that may be garbage no full collection has looked for yet.

    Garbage in cycles piles up until its share of the old objects makes Python collect them all,
    and CPython keeps freed tuples for reuse (one more with each backward pass, up to 2,000). Both
    look like a slow leak until a full collection has run, and both stay a small share of all
    blocks; a leak does not stop there.
    """
    collected = _has_collected(series, blocks.from_step, blocks.to_step)
    grown = max(series.values) - series.values[0]
    may_be_garbage = not collected and 0 <= grown <= _GARBAGE_SHARE * series.values[0]
    if blocks.outcome is Outcome.STEADY or not may_be_garbage:
        return blocks
    if len(series.values) < _ENOUGH_POINTS:
        return blocks
    rate = blocks.bytes_per_step.value
    because = (
        f"Python's blocks rise by about {text.size(rate)} per step, but no full garbage collection "
        "has run that would tell garbage from what is kept"
    )
    if rate >= _ALWAYS_MATTERS:
        because += ": run on until one has, or call gc.collect() every hundred steps."
        return replace(blocks, outcome=Outcome.UNKNOWN, because=because)
    because += f", and they are {text.percent(grown / series.values[0])} of all blocks only."
    return replace(blocks, outcome=Outcome.STEADY, because=because)


def _has_collected(series: Series, first: float, last: float) -> bool:
    """Has a full collection run between these steps?"""
    return any(first <= series.steps[i] <= last for i in series.floors)


def _add(live: Verdict, blocks: Verdict) -> Verdict:
    """Small Python objects lie outside malloc: both counters grow, and the growth is their sum."""
    a, b = live.bytes_per_step, blocks.bytes_per_step
    both = Rate(a.value + b.value, a.low + b.low, a.high + b.high)
    because = (
        f"{live.because.rstrip('.')}; Python's small objects add about "
        f"{text.size(b.value)} per step."
    )
    grown = live.grown_bytes + blocks.grown_bytes
    return replace(live, bytes_per_step=both, because=because, grown_bytes=grown)
