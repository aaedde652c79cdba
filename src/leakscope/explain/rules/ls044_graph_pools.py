"""LS044: CUDA graphs keep their pools."""

from itertools import pairwise

from leakscope import text
from leakscope.explain.rule import RunCase, harmless
from leakscope.judge.series import ALLOCATED, RESERVED
from leakscope.model import Outcome

_WORTH_SAYING = 1 << 20
_FEWEST_RISES = 4
"""Of what is reserved: two or three are the start of any program. A choice."""


@harmless("LS044")
def graph_pools(case: RunCase) -> str | None:
    """CUDA graphs keep the memory of everything that runs inside them.

    ## Why it looks like a leak
    A graph is recorded once, for each shape of its input, and has a pool of its own that is never
    given to anybody else: with each new shape memory rises and stays.

    ## Example
    ```python
    model = torch.compile(model, mode="reduce-overhead")  # one graph for each shape
    ```

    ## What to do
    Nothing, once all shapes have come by. Fewer shapes (padding), or one pool for several graphs
    (`torch.cuda.graph(..., pool=...)`), make it less.

    ## Not this rule when
    New shapes never end: then it grows, and the verdict says so. There is one graph, which was
    captured at the start: nothing rises with it.
    """
    for device, verdicts, _ in case.devices():
        size, _ = case.tallied(device, "graph pool")
        live, reserved = verdicts.get(ALLOCATED), verdicts.get(RESERVED)
        if size < _WORTH_SAYING or live is None or reserved is None:
            continue
        if not live.outcome is reserved.outcome is Outcome.STEADY:
            continue
        values = [value for _, value in case.rows(f"{device}.reserved_bytes")]
        if sum(after > before for before, after in pairwise(values)) < _FEWEST_RISES:
            continue
        return (
            f"{device}: {text.size(size)} are in the pools of CUDA graphs, which keep what runs "
            "inside them for as long as they live. They rise with each new graph and stay."
        )
    return None
