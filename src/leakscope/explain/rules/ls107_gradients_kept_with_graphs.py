"""LS107: gradients are kept that carry graphs of their own."""

import ast
from collections.abc import Iterator

from leakscope.attribute.forms import kept_names
from leakscope.attribute.program import last_name
from leakscope.explain.rule import Case, Weight, rule
from leakscope.explain.rules.ls101_kept_with_graph import GRAPH_SHARE
from leakscope.explain.source import Keeping, assignments, has_keyword, keeping_of


@rule(
    "LS107",
    weight=Weight.CAUSE,
    fix="keep the gradients without their graphs (`grad.detach()`), and ask for create_graph=True "
    "only where a second derivative is computed",
)
def gradients_kept_with_graphs(case: Case) -> bool:
    """Gradients are kept, and each has a graph of its own, because of `create_graph=True`.

    ## Why it leaks
    With `create_graph=True` a gradient is a result that can be differentiated again: it carries the
    graph of the backward pass, which leads to that of the forward pass and all its activations.

    ## Example
    ```python
    grads = torch.autograd.grad(loss, parameters, create_graph=True)
    history.append(grads)
    ```

    ## Use instead
    `history.append([grad.detach() for grad in grads])`. A penalty on a gradient needs the graph
    until its own `backward()`, and not longer.

    ## Not this rule when
    Parameters are held by their own gradients, with nothing in Python that keeps them: LS105. What
    is kept was not made by `grad` or read from `.grad`: LS101.
    """
    if case.holding.kind in ("graph", "gradient cycle"):
        return False
    if case.share_of("saved", "nodes") <= GRAPH_SHARE:
        return False
    if any(link.via == ".grad" for link in case.below):
        return True
    keeping = keeping_of(case)
    return keeping is not None and _keeps_gradients(keeping)


def _keeps_gradients(keeping: Keeping) -> bool:
    """What the statement stores comes from `grad(…, create_graph=True)`, or is a `.grad`."""
    if any(_is_gradient(node) for node in ast.walk(keeping.statement)):
        return True
    names = kept_names(keeping.statement)
    return any(
        _bare(targets) & names and any(_is_gradient(node) for node in ast.walk(value))
        for targets, value in assignments(keeping)
    )


def _bare(targets: set[str]) -> set[str]:
    return set(_names(targets))


def _names(targets: set[str]) -> Iterator[str]:
    for target in targets:
        yield target.partition(".")[0].partition("[")[0]


def _is_gradient(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        return node.attr == "grad" and not _is_autograd(node.value)
    return (
        isinstance(node, ast.Call)
        and last_name(node.func) == "grad"
        and has_keyword(node, "create_graph")
    )


def _is_autograd(node: ast.expr) -> bool:
    """`torch.autograd.grad` is the function, not a gradient."""
    return last_name(node) == "autograd"
