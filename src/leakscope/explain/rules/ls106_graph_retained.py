"""LS106: graphs that are kept have their activations, because backward was told to retain them."""

from leakscope.attribute.program import last_name
from leakscope.explain.rule import Case, Weight, rule
from leakscope.explain.source import has_keyword, keeping_of

_SAVED_SHARE = 0.3
"""Of what one item keeps. After a plain `backward()` what was saved is gone and nodes are left."""


@rule(
    "LS106",
    weight=Weight.CAUSE,
    fix="call `backward()` without retain_graph=True, which lets go of the activations, and keep "
    "`.detach()`ed values only",
)
def graph_retained(case: Case) -> bool:
    """Tensors are kept whose graphs have all their activations, because of `retain_graph=True`.

    ## Why it leaks
    `backward()` frees the activations that the graph has saved. With `retain_graph=True` they stay
    as long as anything leads to the graph, and a loss in a list does. Without it, the same list
    would keep nodes only: hundreds of bytes instead of megabytes.

    ## Example
    ```python
    loss.backward(retain_graph=True)
    losses.append(loss)
    ```

    ## Use instead
    `loss.backward()` and `losses.append(loss.item())`. Two losses on one graph need no retaining:
    `(first + second).backward()`.

    ## Not this rule when
    What is kept has no graph, or only the nodes of one: LS101. A state is carried from step to step
    and `retain_graph` merely makes that run: LS104.
    """
    if case.holding.kind == "graph" or case.share_of("saved") <= _SAVED_SHARE:
        return False
    keeping = keeping_of(case)
    return keeping is not None and any(
        last_name(call.func) == "backward" and has_keyword(call, "retain_graph")
        for call in keeping.calls
    )
