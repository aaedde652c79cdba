"""LS042: the allocator of a device holds what a high point needed."""

from leakscope import text
from leakscope.explain.rule import RunCase, harmless
from leakscope.judge.series import ALLOCATED, RESERVED
from leakscope.model import Outcome

_WORTH_SAYING = 64 << 20
_OF_RESERVED = 0.3
_OF_HELD = 0.5
"""It has to have risen by so much of it, and later than in the first steps: what the first of them
frees at its end is held from then on by any program. And the high point has to have been so much
higher than what is in use now, or else something else holds it: twelve streams, each with blocks of
its own, held 284 MiB of a program that had needed 430 MiB at most and had 426 in use. A choice."""


@harmless("LS042", unless=("LS045",))
def device_cache_after_peak(case: RunCase) -> str | None:
    """The allocator of a device holds memory that an earlier high point needed, to use it again.

    ## Why it looks like a leak
    PyTorch gives freed memory to its own cache and not to the driver. After one large batch, an
    evaluation or a compilation, `nvidia-smi` stays at the height of it for as long as the program
    runs.

    ## Example
    ```python
    score = (queries @ keys.T).max()  # 4 GiB for a moment, once
    ```

    ## What to do
    Nothing, if the program is alone on the device: it is used again, or given back before an
    allocation fails. Beside other programs, `torch.cuda.empty_cache()` once after the high point.

    ## Not this rule when
    What is reserved goes on growing: LS041. It rose with each step that needed more than all
    before it: LS045. It was as much from the first steps on: that is what a step needs and frees.
    """
    for device, verdicts, series in case.devices():
        live, reserved = verdicts.get(ALLOCATED), verdicts.get(RESERVED)
        if live is None or reserved is None or RESERVED not in series:
            continue
        if not live.outcome is reserved.outcome is Outcome.STEADY:
            continue
        held = series[RESERVED].values[-1] - series[ALLOCATED].values[-1]
        if held < _WORTH_SAYING or held < _OF_RESERVED * series[RESERVED].values[-1]:
            continue
        if reserved.size_bytes < _OF_HELD * held:
            continue
        if case.is_of_first_steps(f"{device}.reserved_bytes"):
            continue
        in_use, peak = series[ALLOCATED].values[-1], case.detail(device, "peak_allocated_bytes")
        if peak - in_use < _OF_HELD * held:
            continue
        return (
            f"{device}: the allocator holds {text.size(held)} for reuse beside "
            f"{text.size(in_use)} in use, since the highest point of the run needed "
            f"{text.size(peak)}. It is not a leak; torch.cuda.empty_cache() gives it back to other "
            "programs."
        )
    return None
