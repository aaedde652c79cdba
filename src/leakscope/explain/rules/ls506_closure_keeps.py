"""LS506: functions are kept, and each keeps the variables it closes over."""

from leakscope.explain.rule import Case, Weight, rule


@rule(
    "LS506",
    weight=Weight.ITEM,
    fix="call the function and keep its result, or give it plain values: compute the number first "
    "and close over that, not over the tensor or the object",
)
def closure_keeps(case: Case) -> bool:
    """Functions are kept, and each keeps the variables it closes over.

    ## Why it leaks
    A lambda or an inner function that uses variables of the function around it keeps them alive,
    whole: the batch for one number of it, `self` for one setting. So does a `partial` its
    arguments. A list of such functions is a list of all that.

    ## Example
    ```python
    later.append(lambda: report(step, logits.argmax(1)))
    ```

    ## Use instead
    Compute first and close over the result: `best = logits.argmax(1).tolist()`. Or call what is
    due and empty the list in each step. With `atexit`, register one function, once.

    ## Not this rule when
    The functions are hooks of torch (LS301), or bound methods (LS304).
    """
    below = case.below
    grows = case.holding.path[case.holding.grows_at]
    if grows.kind == "native" and grows.type in ("function", "partial"):
        return True
    if not below or below[0].type not in ("function", "partial"):
        return False
    return below[0].type == "partial" or any(link.via.startswith("closure") for link in below)
