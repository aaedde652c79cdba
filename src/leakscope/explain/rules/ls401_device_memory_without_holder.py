"""LS401: device memory stays in use, and no Python object holds it."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS401",
    weight=Weight.CAUSE,
    fix="look for what this line hands to C++: an extension, a stream or a graph that keeps its "
    "inputs; free it there, or call it with memory that is used again",
)
def device_memory_without_holder(case: Case) -> bool:
    """Device memory that a line asks for stays in use, and no tensor of Python's lies there.

    ## Why it leaks
    A storage can be held by C++ alone: an extension that keeps its inputs, a library that takes a
    workspace for every stream or thread it meets. The collector and Python know nothing of it.

    ## Example
    ```python
    with torch.cuda.stream(torch.cuda.Stream()):  # a workspace for every new stream
        y = x @ w
    ```

    ## Use instead
    A few streams that are made once. For an extension: look at what it keeps between two calls.

    ## Not this rule when
    A tensor lies there: then who holds it is told. Growth of what is only reserved is LS041.
    """
    return case.holding.kind == "device"
