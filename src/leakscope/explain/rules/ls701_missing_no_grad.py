"""LS701: results of a model that is only run are kept with their graphs."""

from leakscope.explain.rule import Case, Weight, rule
from leakscope.explain.rules.ls101_kept_with_graph import GRAPH_SHARE
from leakscope.explain.source import only_runs_forward


@rule(
    "LS701",
    weight=Weight.HOLDER,
    fix="run the model under torch.inference_mode() or torch.no_grad(): nothing is trained here, "
    "and results then have no graphs to keep",
)
def missing_no_grad(case: Case) -> bool:
    """A model is only run, nothing is trained, and its results are kept with their graphs.

    ## Why it leaks
    Parameters ask for gradients whether anybody trains or not; `model.eval()` does not change that.
    Every result carries the graph of its forward pass and all activations that a backward pass
    would need. It never comes, so they stay as long as the result.

    ## Example
    ```python
    model.eval()
    for x in batches:
        scores.append(model(x))
    ```

    ## Use instead
    ```python
    with torch.inference_mode():
        for x in batches:
            scores.append(model(x))
    ```

    ## Not this rule when
    An optimizer steps, or the program calls `backward()` or `grad()` anywhere: LS101. The results
    have no graphs and are still too many: LS702.
    """
    is_kept = case.share_of("saved", "nodes") > GRAPH_SHARE
    return is_kept and case.holding.kind != "graph" and only_runs_forward(case)
