"""LS090: graphs are traced again and again, and freed."""

from leakscope import text
from leakscope.explain.rule import RunCase, harmless

_FEWEST = 40
_A_STEP = 0.2
"""Graphs that were traced and freed: fewer are the start of any program that compiles something."""


@harmless("LS090")
def graphs_dropped(case: RunCase) -> str | None:
    """`tf.function`s are made, traced, called and dropped, again and again.

    ## Why it looks like a leak
    A function and its graph refer to each other, so a dropped one waits for the garbage
    collector, and memory goes up in between. It was claimed that traced graphs are never freed
    (tensorflow#124972).

    ## Example
    ```python
    for task in tasks:
        solve = tf.function(lambda x: task.loss(x))  # traced anew for each task
        solve(x)
    ```

    ## What to do
    Nothing for memory's sake. Tracing takes tens of milliseconds each time: one function
    outside of the loop, with what changes as an argument, is faster.

    ## Not this rule when
    One function gets new signatures and keeps their graphs: LS901. Graphs with a custom
    gradient stay in the gradient registry: LS902.
    """
    traced, alive = (
        case.told("tensorflow", "graphs of functions traced"),
        case.told("tensorflow", "graphs of functions alive"),
    )
    # Counts of graphs, so that it does not matter whether the bytes were enough for a verdict.
    if traced is None or alive is None or case.is_growing:
        return None
    freed = traced - alive
    if freed < max(_FEWEST, _A_STEP * case.run.axis.last_step):
        return None
    return (
        f"{text.count(traced)} graphs were traced in this run and {text.count(alive)} of them are "
        "alive: the others were freed with their functions. Tracing again and again costs time, "
        "not memory."
    )
