"""LS105: parameters are held by their own gradients, in a circle that no collector sees."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS105",
    weight=Weight.CAUSE,
    fix="use torch.autograd.grad(…, create_graph=True), which puts no graph into "
    "`.grad`, or set the gradients to None before the model is dropped",
)
def create_graph_cycle(case: Case) -> bool:
    """Parameters are held by their own gradients, in a circle that no collector sees.

    ## Why it leaks
    `backward(create_graph=True)` gives each `.grad` a graph, the graph leads to its parameter,
    and the parameter owns the gradient. The circle lies in C++, where no collector sees it: a
    model that is dropped stays, with its gradients and the graph.

    ## Example
    ```python
    model = build()
    loss(model).backward(create_graph=True)
    del model  # frees nothing
    ```

    ## Use instead
    `torch.autograd.grad(loss, parameters, create_graph=True)`, which puts no graph into `.grad`;
    or set the gradients to None before the model is dropped.

    ## Not this rule when
    One model lives through the whole run. Its gradients are replaced, not added.
    """
    return case.holding.kind == "gradient cycle"
