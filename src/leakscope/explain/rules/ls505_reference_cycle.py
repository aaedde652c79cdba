"""LS505: objects in reference cycles wait for the garbage collector."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS505",
    weight=Weight.CAUSE,
    fix="break the cycle (a weak reference, or no bound method of the object stored on "
    "itself), or let the collector run (where gc.freeze() is called, before that)",
)
def reference_cycle(case: Case) -> bool:
    """Objects in reference cycles wait for the garbage collector.

    ## Why it leaks
    Objects that refer to each other in a circle are freed by the garbage collector only, and it
    runs by the number of objects. A few large tensors in small cycles can fill the memory before
    it does. With `gc.disable()` it never does, and what `gc.freeze()` finds it never looks at
    again.

    ## Example
    ```python
    class Result:
        def __init__(self, tensor):
            self.tensor = tensor
            self.again = self.compute  # a bound method of itself, on itself
    ```

    ## Use instead
    A weak reference for one of the links, or no link back. Or let the collector run:
    `gc.collect()` every so many steps.

    ## Not this rule when
    Somebody holds the objects from outside, cycle or not. With a collector that runs often enough
    the series is a saw-tooth, which is STEADY.
    """
    return case.holding.kind in ("cycle", "frozen")
