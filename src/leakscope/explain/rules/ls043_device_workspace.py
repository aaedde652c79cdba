"""LS043: libraries take a workspace on the device, once."""

from leakscope import text
from leakscope.explain.rule import RunCase, harmless
from leakscope.judge.series import ALLOCATED
from leakscope.model import Outcome

_WORTH_SAYING = 8 << 20
_OF_ONE_STREAM = 2
"""Blocks: every program that multiplies has those of one stream, from its first step on (32 MiB
and 1 MiB on an H200)."""


@harmless("LS043")
def device_workspace(case: RunCase) -> str | None:
    """Libraries take a workspace on the device the first time they are used, and keep it.

    ## Why it looks like a leak
    cuBLAS and cuDNN ask PyTorch's allocator for a workspace, for each stream that they are used on:
    32 MiB each on an H200. It is in use from then on, and belongs to no tensor.

    ## Example
    ```python
    with torch.cuda.stream(streams[step % 8]):
        model(batch)  # the first eight steps take one workspace each
    ```

    ## What to do
    Nothing. `CUBLAS_WORKSPACE_CONFIG=:4096:2` makes it smaller, which can make products slower.

    ## Not this rule when
    It goes on growing: streams or threads are made anew all the time.
    """
    for device, verdicts, _ in case.devices():
        size, count = case.tallied(device, "workspace")
        live = verdicts.get(ALLOCATED)
        if live is None or live.outcome is not Outcome.STEADY:
            continue
        if size < _WORTH_SAYING or count <= _OF_ONE_STREAM:
            continue
        return (
            f"{device}: {text.size(size)} are in use without a tensor: workspaces of cuBLAS and "
            "its like, taken once for each stream. They do not add up over steps."
        )
    return None
