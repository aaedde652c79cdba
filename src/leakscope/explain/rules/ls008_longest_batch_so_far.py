"""LS008: resident memory rises with the largest step so far."""

import numpy as np

from leakscope import text
from leakscope.explain.rule import RunCase, harmless
from leakscope.judge.series import IN_USE, RSS
from leakscope.model import Outcome, Series, Shape

_RISE_WORTH_SAYING, _OF_RESIDENT = 16 << 20, 0.125
"""Bytes, and share of what is resident in the end: in any program the first steps are of several
sizes, which makes up to 8 %, seldom 11."""
_ROWS_AROUND = 15
"""Before the first rise and after the last: what is live at one step alone is that step's batch."""
_OF_LIVE = 0.05
"""If live memory rose by more than this share of it, something else is at work: where
a buffer or a cache fills up it is 8 to 35 %."""
_MORE_THREADS = 3
"""So many more threads bring arenas of their own: LS009."""


@harmless("LS008")
def longest_batch_so_far(case: RunCase) -> str | None:
    """Resident memory rises whenever a step is larger than all before, ever more rarely.

    ## Why it looks like a leak
    Texts, sounds and images differ in size. The longest batch so far needs the most memory so far,
    and the allocator holds on to it. As records do, these rises become rarer, but they do not stop
    at a certain step.

    ## Example
    ```python
    batch = pad_sequence(texts, batch_first=True)  # as long as the longest of them
    ```

    ## What to do
    Nothing, or the longest batch first: the run then shows at its start whether it fits. Cutting
    lengths off, or batches with a fixed number of tokens, makes the peak known.

    ## Not this rule when
    Live memory rises with it: what was made is kept. Rises that all lie at the start are LS001.
    Where no steps are seen, or several threads make them, it is silent: nobody knows then what one
    step needs.
    """
    if case.run.axis.tick_s is not None:
        return None  # by the clock nobody knows what a step needs
    if case.steps_in_several_threads:
        return None
    live, in_use = case.verdict(IN_USE), case.series(IN_USE)
    _, threads = case.threads()
    if live is None or in_use is None or live.outcome is not Outcome.STEADY or not case.is_steady:
        return None
    if len(threads) and threads.max() - threads[0] >= _MORE_THREADS:
        return None
    resident = case.series(RSS)
    of_resident = _OF_RESIDENT * resident.values[-1] if resident is not None else 0.0
    enough = max(_RISE_WORTH_SAYING, of_resident)
    rise = case.verdict(RSS)
    if rise is None or rise.shape is not Shape.HIGH_WATER or not rise.steps_at:
        return None
    if rise.size_bytes < enough:
        return None
    if _live_rise(in_use, rise.steps_at[0], rise.steps_at[-1]) > _OF_LIVE * rise.size_bytes:
        return None
    return (
        f"Resident memory rose {text.count(len(rise.steps_at))} times, by "
        f"{text.size(rise.size_bytes)} in all and ever more rarely (last at step "
        f"{text.count(round(rise.steps_at[-1]))}), and live memory did not: as when a step "
        "needs more than all before it, such as the longest batch so far."
    )


def _live_rise(in_use: Series, first_step: float, last_step: float) -> float:
    """By how much live memory was higher after the last rise than before the first."""
    steps, values = np.asarray(in_use.steps), np.asarray(in_use.values)
    before = values[steps < first_step][-_ROWS_AROUND:]
    after = values[steps > last_step][:_ROWS_AROUND]
    return float(np.median(after) - np.median(before)) if len(before) and len(after) else 0.0
