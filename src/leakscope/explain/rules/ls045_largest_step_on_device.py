"""LS045: reserved device memory rises with the largest step so far."""

from leakscope import text
from leakscope.explain.rule import RunCase, harmless
from leakscope.judge.series import ALLOCATED, RESERVED
from leakscope.model import Outcome, Shape

_WORTH_SAYING = 8 << 20
_OF_LIVE = 0.2
_FEWEST_RISES = 2
_SHAPES = (Shape.HIGH_WATER, Shape.STEP, Shape.WARM_UP, Shape.FILLING, Shape.STAIRCASE)


@harmless("LS045")
def largest_step_on_device(case: RunCase) -> str | None:
    """Reserved device memory rises whenever a step is larger than all before, ever more rarely.

    ## Why it looks like a leak
    The longest batch so far needs the most memory so far, and the allocator keeps what it got.
    Records become rarer, but do not stop at a certain step.

    ## Example
    ```python
    batch = pad_sequence(texts, batch_first=True).cuda()  # as long as the longest of them
    ```

    ## What to do
    Nothing, or the longest batch first: the run then shows at its start whether it fits.

    ## Not this rule when
    What is in use at the end of the steps rises too: what was made is kept.
    """
    for device, verdicts, _ in case.devices():
        live, reserved = verdicts.get(ALLOCATED), verdicts.get(RESERVED)
        if live is None or reserved is None:
            continue
        if not live.outcome is reserved.outcome is Outcome.STEADY:
            continue
        rise = reserved.size_bytes
        is_of_live = live.size_bytes > _OF_LIVE * rise
        if reserved.shape not in _SHAPES or rise < _WORTH_SAYING or is_of_live:
            continue
        if len(reserved.steps_at) < _FEWEST_RISES:
            continue  # one high point: LS042
        times = text.count(len(reserved.steps_at))
        return (
            f"{device}: what the allocator has reserved rose {times} times, by {text.size(rise)} "
            "in all, and what is in use did not: as when a step needs more than all before it."
        )
    return None
