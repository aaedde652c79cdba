"""LS108: a buffer of a module is updated with values that carry graphs."""

from leakscope.explain.rule import Case, Weight, rule
from leakscope.explain.source import is_module, owners


@rule(
    "LS108",
    weight=Weight.CAUSE,
    fix="update the buffer under torch.no_grad(), or from `.detach()`ed values: it is no parameter "
    "and needs no gradient",
)
def buffer_carries_graph(case: Case) -> bool:
    """A buffer of a module is updated with values that carry graphs.

    ## Why it leaks
    A running mean, a centre or a counter is computed from its last value and from activations. The
    activations have a graph, so the buffer gets one too, and it leads back to the first step. The
    module lives as long as the run, and so does the graph.

    ## Example
    ```python
    def forward(self, x):
        features = self.body(x)
        self.center = 0.9 * self.center + 0.1 * features.mean(0)
        return features
    ```

    ## Use instead
    ```python
    with torch.no_grad():
        self.center.mul_(0.9).add_(features.mean(0), alpha=0.1)
    ```

    ## Not this rule when
    What the graph hangs on is no attribute of a module whose source was recorded: LS102. A state
    goes through a call and comes back as the next one: LS104.
    """
    if case.holding.kind != "graph":
        return False
    nearest = next(owners(case), None)
    return nearest is not None and is_module(nearest, case.sources)
