"""LS101: tensors are kept while they still carry their autograd graphs."""

from leakscope.explain.rule import Case, Weight, rule

GRAPH_SHARE = 0.3
"""Of what one item keeps: from here on the graph is what costs, not the item."""


@rule(
    "LS101",
    weight=Weight.ITEM,
    fix="keep the value without its graph: `.detach()`, `.item()` for a number, or "
    "compute it under torch.no_grad()",
)
def kept_with_graph(case: Case) -> bool:
    """Tensors are kept while they still carry their autograd graphs.

    ## Why it leaks
    A tensor computed from parameters carries its autograd graph, and the graph has saved
    activations of its step. A list of losses is then a list of all activations. After
    `backward()` the activations are gone, but the nodes of the graph stay: 560 to 824 bytes each.

    ## Example
    ```python
    losses.append(loss)
    ```

    ## Use instead
    `losses.append(loss.item())` for a number, `.detach()` for a tensor, or compute it under
    `torch.no_grad()`.

    ## Not this rule when
    The graph, its nodes and what they have saved, is 30 % or less of what one item keeps. Then
    the container itself is what costs: LS501.
    """
    return case.share_of("saved", "nodes") > GRAPH_SHARE
