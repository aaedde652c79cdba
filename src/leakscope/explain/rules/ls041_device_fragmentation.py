"""LS041: the allocator of a device reserves ever more, and nothing more is in use."""

from leakscope import text
from leakscope.explain.rule import RunCase, harmless
from leakscope.judge.series import RESERVED, UNUSED
from leakscope.model import Shape


@harmless("LS041")
def device_fragmentation(case: RunCase) -> str | None:
    """The allocator of a device reserves ever more memory, while no more is in use.

    ## Why it looks like a leak
    `nvidia-smi` shows what is reserved. The allocator cuts large pieces for small requests and
    cannot put them together while one part is in use; a request that fits none of the pieces gets a
    new one. With sizes that are always new, that goes on until memory is full.

    ## Example
    ```python
    for length in lengths:  # never the same twice
        model(torch.zeros(32, length, device="cuda"))
    ```

    ## What to do
    `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` lets pieces grow instead. Or few sizes: pad
    to multiples (buckets). `torch.cuda.empty_cache()` gives back only pieces that are wholly free,
    and the next step pays for asking anew.

    ## Not this rule when
    What is in use grows too: then something is kept, and the findings say what.
    """
    for device, verdicts, series in case.devices():
        reserved = verdicts.get(RESERVED)
        if reserved is None or reserved.shape is not Shape.FRAGMENTATION:
            continue
        unused = series[UNUSED].values[-1] if UNUSED in series else 0.0
        whole = case.detail(device, "reserved_bytes") - case.detail(device, "allocated_bytes")
        split = case.detail(device, "split_bytes")
        freed = text.size(max(whole - split, 0))
        return (
            f"{device}: {text.size(unused)} are reserved and not in use, "
            f"{text.size(reserved.bytes_per_step.value)} more with each step; nothing of it is "
            "kept by the program. PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or sizes "
            f"padded to a few lengths, stop that; torch.cuda.empty_cache() would give back {freed} "
            "now, and only for a while."
        )
    return None
