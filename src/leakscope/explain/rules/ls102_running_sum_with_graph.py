"""LS102: one graph gets longer with every step."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS102",
    weight=Weight.CAUSE,
    fix="add up `.detach()`ed values (or `.item()`), and detach a state that is carried "
    "to the next step",
)
def running_sum_with_graph(case: Case) -> bool:
    """One autograd graph gets longer with every step, back to the first.

    ## Why it leaks
    Each step's tensor is computed from that of the step before, so one graph leads back to the
    first step. Nothing gets longer that Python could see: the nodes are C++ objects.

    ## Example
    ```python
    total = total + loss  # the sum of all losses, with all their graphs
    state = cell(x, state)  # a state that is carried on
    ```

    ## Use instead
    `total += loss.item()`; `state = cell(x, state.detach())`.

    ## Not this rule when
    Several tensors with graphs are kept side by side: LS101.
    """
    return case.holding.kind == "graph"
