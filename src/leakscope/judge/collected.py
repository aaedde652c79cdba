"""Growth that a full collection at the end gave back: garbage that the collector had not come to.

Beside 1.3 million objects of TensorFlow, Python collects everything only once their number has
grown by a quarter: 700 calls of Keras' `predict` leave 12 MiB of cycles before that (TensorFlow
2.21), which look like a leak of 17 KiB a call.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from leakscope import text
from leakscope.judge.account import BLOCK_BYTES, Account
from leakscope.judge.series import BLOCKS, IN_USE, RunSeries
from leakscope.model import COLLECTS, REMEDY, Mark, Outcome, Series, Shape, Verdict

_COLLECTION = "collection"


def without_garbage(account: Account, run: RunSeries) -> Account:
    """The same, or STEADY where what is left after the collection has not grown visibly."""
    verdict = account.verdict
    if verdict.outcome is not Outcome.GROWING or account.device is not None:
        return account
    marks = [mark for mark in run.recording.marks if mark.process == account.process]
    remedy = next((m for m in marks if m.what == REMEDY and m.text == _COLLECTION), None)
    live = run.series.get((IN_USE, account.process))
    if remedy is None or not remedy.values.get(COLLECTS) or live is None:
        return account  # with the collector switched off, garbage stays for good
    blocks = None if live.has_blocks else run.series.get((BLOCKS, account.process))
    returned = _returned(remedy, "in_use_bytes")
    if blocks is not None:
        returned += BLOCK_BYTES.value * _returned(remedy, "blocks_count")
    rate = verdict.bytes_per_step.value
    # At the first of the judged steps garbage was there, too: of all steps since it was last gone.
    began = _last_collection(run, marks, verdict.from_step)
    grown = _rise(live, verdict) + rate * (verdict.from_step - began)
    if blocks is not None:
        grown += BLOCK_BYTES.value * _rise(blocks, verdict)
    stays = (grown - returned) / max(verdict.to_step - began, 1.0)
    if returned <= 0 or stays >= verdict.smallest_visible_bytes_per_step:
        return account
    because = (
        f"What rose by {text.rate(rate)} was garbage in reference cycles that the collector had "
        f"not come to: a full collection at the end gave back {text.size(returned)}, and what "
        f"stays is too little to be seen."
    )
    steady = replace(verdict, outcome=Outcome.STEADY, shape=Shape.SAW_TOOTH, because=because)
    rest = tuple(one for one in account.verdicts if one is not verdict)
    return account._replace(verdict=steady, verdicts=(steady, *rest))


def _returned(remedy: Mark, counter: str) -> float:
    return remedy.values.get(f"{counter} before", 0) - remedy.values.get(f"{counter} after", 0)


def _last_collection(run: RunSeries, marks: list[Mark], before: float) -> float:
    times = [float(m.at.mono_ns) for m in marks if m.what == _COLLECTION]
    steps = run.axis.at(np.asarray(times)) if times else np.empty(0)
    return max((float(step) for step in steps if step <= before), default=0.0)


def _rise(series: Series, verdict: Verdict) -> float:
    """Over the judged steps, to where the collection found it."""
    first = float(np.interp(verdict.from_step, series.steps, series.values))
    return float(series.values[-1]) - first
