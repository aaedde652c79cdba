"""LS102: one graph gets longer with every step."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS102",
    weight=Weight.HOLDER,
    fix="add up `.detach()`ed values (or `.item()`): what is computed from its own last value "
    "keeps the graphs of all steps",
)
def running_sum_with_graph(case: Case) -> bool:
    """One autograd graph gets longer with every step, back to the first.

    ## Why it leaks
    Each step's tensor is computed from that of the step before, so one graph leads back to the
    first step. Nothing gets longer that Python could see: the nodes are C++ objects.

    ## Example
    ```python
    total = total + loss  # the sum of all losses, with all their graphs
    average = 0.99 * average + 0.01 * weight
    ```

    ## Use instead
    `total += loss.item()`; `average = 0.99 * average + 0.01 * weight.detach()`.

    ## Not this rule when
    The value goes through a call and comes back as the next one, as the state of a recurrent
    network does: LS104. It is a buffer or an attribute of a module: LS108. Several tensors with
    graphs are kept side by side: LS101.
    """
    return case.holding.kind == "graph"
