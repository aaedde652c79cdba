"""The series of one device in, one answer for it out: in use, reserved, and what lies between.

What is in use says whether something is kept. What is reserved beyond that is the allocator's: a
high water of the largest step so far, or, if it goes on growing, pieces that nothing fits into.
"""

from __future__ import annotations

from msgspec.structs import replace

from leakscope import text
from leakscope.judge.account import Account, name_subject, settle, smallest_for
from leakscope.judge.series import ALLOCATED, PINNED, PINNED_IN_USE, POOLS, RESERVED, UNUSED
from leakscope.judge.verdict import judge
from leakscope.model import Outcome, Series, Shape, Verdict

_ENOUGH_POINTS = 8
_MOSTLY = 0.5
_SUBJECTS = {
    ALLOCATED: "GPU memory in use",
    RESERVED: "GPU memory that the allocator has reserved",
    UNUSED: "GPU memory that is reserved and not in use",
    PINNED_IN_USE: "Pinned host memory",
}


def account_for_device(
    process: str, device: str, series: dict[str, Series], smallest_that_matters: float
) -> Account | None:
    """Judge what one process does on one device."""
    judged: dict[str, Verdict] = {}
    for metric, one in series.items():
        if metric == POOLS:
            continue  # explains the others
        smallest = smallest_for(one, smallest_that_matters)
        verdict = settle(judge(one, smallest_that_matters=smallest), smallest, one)
        subject = _SUBJECTS[metric]
        if device != PINNED:
            subject += f" ({device})"
        judged[metric] = replace(
            verdict,
            because=name_subject(verdict.because, subject),
            smallest_visible_bytes_per_step=max(verdict.smallest_visible_bytes_per_step, smallest),
        )
    if not judged:
        return None
    answer = judged.get(ALLOCATED) or next(iter(judged.values()))
    reserved = judged.get(RESERVED)
    if reserved is not None and _grows(reserved) and answer.outcome is Outcome.STEADY:
        judged[RESERVED] = answer = _fragmented(reserved, answer, device, series)
    rest = tuple(v for v in judged.values() if v.series != answer.series)
    return Account(process, answer, (answer, *rest), device)


def _fragmented(
    reserved: Verdict, live: Verdict, device: str, series: dict[str, Series]
) -> Verdict:
    """Reserved grows while nothing more is in use: nothing is kept, and nothing is found again."""
    if len(series[ALLOCATED].values) < _ENOUGH_POINTS:
        return reserved
    rate = text.size(reserved.bytes_per_step.value)
    if live.smallest_visible_bytes_per_step > reserved.bytes_per_step.value:
        because = (
            f"The allocator reserves {rate} more of {device} per step, but what is in use goes up "
            "and down too much from step to step to tell whether that is kept; run longer."
        )
        return replace(reserved, outcome=Outcome.UNKNOWN, because=because)
    pools = _pools_rate(series.get(POOLS))
    if pools >= _MOSTLY * reserved.bytes_per_step.value:
        because = (
            f"The pools of CUDA graphs on {device} grow by {text.size(pools)} per step: graphs are "
            "captured anew and kept, each with the memory of all that runs inside it."
        )
        return replace(reserved, because=because)
    now = series[UNUSED].values[-1] if UNUSED in series else 0.0
    because = (
        f"The allocator reserves {rate} more of {device} per step while what is in use is flat: "
        f"freed pieces do not fit what is asked for later (fragmentation; {text.size(now)} lie "
        "unused by now). Nothing is kept by the program."
    )
    return replace(reserved, shape=Shape.FRAGMENTATION, because=because)


def _pools_rate(pools: Series | None) -> float:
    """What CUDA graphs reserve per step, between the first sample and the last."""
    if pools is None or len(pools.values) < 2:
        return 0.0
    return (pools.values[-1] - pools.values[0]) / (pools.steps[-1] - pools.steps[0])


def _grows(verdict: Verdict) -> bool:
    return verdict.outcome in (Outcome.GROWING, Outcome.LEAK)
